"""Figure 5: the probes of the controls in detail (paper app. E). See `figure_4`."""

from dataclasses import replace

from algoscope.experiments import figure_4

EXPERIMENT = replace(
    figure_4.EXPERIMENT,
    name="fig5",
    title="What do probes find where nothing was learned in context?",
    judge=figure_4.judge_controls,
    draw=figure_4.draw_fifth,
    shared="fig4",
)
