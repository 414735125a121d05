"""A probing result answers in words, in rows and in figures 4 and 5."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from support.drawings import bands, labels, legend_of, xs, ys
from support.refusals import refused

from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.plotting import COLORS, render
from algoscope.probing import ProbingConfig, ProbingResult
from algoscope.probing.figures import (
    attention_figure,
    controls_figure,
    layers_figure,
    prefixes_figure,
)
from algoscope.probing.measurement import (
    MeanWithInterval,
    Measurement,
    mean_with_interval,
)


def measurement(learner: str, error: np.ndarray, kind: str = "linear") -> Measurement:
    repeats, layers, prefixes = error.shape
    alpha = np.full((repeats, layers, prefixes, 5), 0.2, np.float32)
    spread = np.tile([2.0, 4.0], (repeats, 1))
    places = tuple(range(layers))
    return Measurement(learner, "moment", kind, places, error, spread, alpha)


def result(rng: np.random.Generator, control_layers: int = 3) -> ProbingResult:
    own = measurement("own", rng.uniform(0, 1, (3, 3, 2)))
    other = measurement("other", rng.uniform(1, 2, (3, control_layers, 2)))
    return ProbingResult(
        learner="own",
        controls=("other",),
        dim=2,
        task="LinearRegression(dim=2)",
        prefixes=(1, 2),
        config=replace(ProbingConfig(), repeats=3).as_dict(),
        versions={"python": "3"},
        measurements=(own, other),
    )


def test_selectivity_is_the_control_minus_the_learner(rng):
    found = result(rng)
    own, other = (each.error for each in found.measurements)
    differences = (other - own).mean(axis=2)
    selectivity = found.selectivity("moment", "linear", "other", "error")
    mean = differences.mean(axis=0)
    half = stats.t.ppf(0.975, 2) * differences.std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(selectivity.mean, mean)
    np.testing.assert_allclose(selectivity.low, mean - half)
    np.testing.assert_allclose(selectivity.high, mean + half)
    over_input = found.selectivity("moment", "linear", "input", "error")
    np.testing.assert_allclose(
        over_input.mean, (own[:, :1] - own).mean(axis=2).mean(axis=0)
    )
    assert over_input.mean[0] == 0


def test_relative_errors_are_shares_of_the_variance(rng):
    own = result(rng).of("moment", "linear")
    np.testing.assert_allclose(own.relative, own.error / np.array([2.0, 4.0]))
    averages = own.relative.mean(axis=(0, 2))
    np.testing.assert_allclose(own.per_layer().mean, averages)
    assert own.best_layer() == np.argmin(averages)
    constant = replace(own, variance=np.zeros((3, 2)))
    assert np.all(np.isnan(constant.relative))


def test_one_repeat_has_no_interval():
    found = mean_with_interval(np.array([[1.0, 2.0]]))
    assert isinstance(found, MeanWithInterval)
    assert found.mean.tolist() == [1, 2]
    assert np.all(np.isnan([found.low, found.high]))


def test_results_refuse_what_they_do_not_hold(rng):
    found = result(rng, control_layers=2)
    with refused("control", "have been probed at the layers (0, 1, 2), got (0, 1)"):
        found.selectivity("moment", "linear", "other")
    with refused("control", "be one of input, other, got 'none'"):
        found.selectivity("moment", "linear", "none")
    with refused("kind", "be one of linear, got 'mlp'"):
        found.of("moment", "mlp")
    late = replace(found.measurements[0], layers=(1, 2, 3))
    with refused("layers", "include 0, the input, to compare with it"):
        replace(found, measurements=(late,)).selectivity("moment", "linear", "input")


def test_a_saved_result_is_loaded_unchanged(tmp_path, rng):
    found = result(rng)
    found.save(tmp_path)
    loaded = ProbingResult.load(tmp_path)
    for kept, read in zip(found.measurements, loaded.measurements, strict=True):
        for name in ("error", "variance", "attention"):
            np.testing.assert_array_equal(getattr(read, name), getattr(kept, name))
    assert replace(loaded, measurements=()) == replace(found, measurements=())
    assert [m.layers for m in loaded.measurements] == [(0, 1, 2)] * 2
    text = (tmp_path / "probing.json").read_text()
    (tmp_path / "probing.json").write_text(text[:-3])
    with pytest.raises(DamagedFileError, match="is not a readable JSON file"):
        ProbingResult.load(tmp_path)
    (tmp_path / "probing.json").write_text('{"format": "something else"}')
    with pytest.raises(DamagedFileError, match="is not a saved probing"):
        ProbingResult.load(tmp_path)


def with_blocks(found: ProbingResult, rng: np.random.Generator) -> ProbingResult:
    """Return the result with blocks of test datasets that average to its errors."""

    def filled(each: Measurement) -> Measurement:
        noise = rng.normal(0, 0.01, (3, 8, *each.error.shape[1:]))
        blocks = each.error[:, None] + noise - noise.mean(axis=1, keepdims=True)
        return replace(
            each,
            blocks=blocks,
            validation=each.error,
            history=np.repeat(each.error[:, None], 5, axis=1),
        )

    return replace(
        found,
        measurements=tuple(map(filled, found.measurements)),
        floors=(filled(replace(found.measurements[1], learner="last pair")),),
    )


def test_intervals_cover_blocks_of_test_datasets_and_pairs_cancel(rng):
    found = with_blocks(result(rng), rng)
    own = found.of("moment", "linear")
    mean, low, high = own.per_layer("error")
    np.testing.assert_allclose(mean, own.error.mean(axis=(0, 2)))
    assert np.all((low < mean) & (mean < high))
    blocks = own.blocks
    assert blocks is not None
    shifted = replace(own, learner="other", error=own.error + 1, blocks=blocks + 1)
    paired = replace(found, measurements=(own, shifted))
    gap = paired.selectivity("moment", "linear", "other", "error")
    np.testing.assert_allclose(gap.low, 1)
    np.testing.assert_allclose(gap.high, 1)


def test_new_fields_are_saved_and_floors_are_drawn(tmp_path, rng):
    found = with_blocks(result(rng), rng)
    found.save(tmp_path)
    loaded = ProbingResult.load(tmp_path)
    assert loaded.places == ("learned",)
    (floor,) = loaded.floors
    kept = found.floors[0]
    assert (floor.learner, floor.layers) == ("last pair", kept.layers)
    for name in ("error", "blocks", "validation", "history"):
        np.testing.assert_array_equal(getattr(floor, name), getattr(kept, name))
    assert "linear, last pair" in labels(layers_figure(loaded).axes[0].lines)
    drawn = labels(prefixes_figure(loaded, kind="linear").axes[0].lines)
    assert drawn[1:] == ["the input", drawn[2], "last pair"]
    with refused("place", "be one of learned, got 'query'"):
        loaded.of("moment", "linear", place="query")


def test_results_that_were_saved_without_places_and_floors_load(rng, tmp_path: Path):
    before = result(rng)
    before.save(tmp_path)
    fields = json.loads((tmp_path / ProbingResult.file).read_text())
    del fields["floors"]
    for each in fields["measurements"]:
        del each["place"]
    (tmp_path / ProbingResult.file).write_text(json.dumps(fields))
    found = ProbingResult.load(tmp_path)
    assert found.of("moment", "linear").place == "learned"
    np.testing.assert_array_equal(
        found.of("moment", "linear").error, before.of("moment", "linear").error
    )
    assert prefixes_figure(found, kind="linear").axes


# Words and rows.


def known(layers: int = 2, **errors: float) -> ProbingResult:
    """Return a result with these errors in the last layer, and more in the others."""
    spread = np.array([-0.01, 0.0, 0.01])[:, None, None]
    down = np.linspace(0.5, 0, layers)[None, :, None]
    found = [
        replace(
            measurement("own", spread + down + error * np.ones((1, 1, 2))), target=t
        )
        for t, error in errors.items()
    ]
    found = [replace(each, variance=np.ones((3, 2))) for each in found]
    return ProbingResult(
        learner="own",
        controls=(),
        dim=2,
        task="LinearRegression(dim=2)",
        prefixes=(1, 2),
        config=replace(ProbingConfig(), repeats=3).as_dict(),
        versions={},
        measurements=tuple(found),
    )


def test_the_sentence_says_where_each_target_is_read_best_and_how_surely():
    assert known(moment=0.4, w_ols=0.3).sentence == (
        "Probes of own read w_ols best in layer 1 (linear, error 0.3 [0.275, 0.325]) "
        "and moment best in layer 1 (linear, error 0.4 [0.375, 0.425]); errors are "
        "relative to the target's variance, 1 being no better than its mean (95 % "
        "intervals over 3 repeats)."
    )


def test_the_sentence_names_the_best_kind_of_probe():
    found = known(moment=0.4)
    deep = replace(found.measurements[0], kind="mlp", layers=(3, 5))
    better = replace(deep, error=deep.error - 0.2)
    both = replace(found, measurements=(*found.measurements, better))
    assert "moment best in layer 5 (mlp, error 0.2 [0.175, 0.225])" in both.sentence


def test_the_sentence_about_one_repeat_has_no_interval():
    (only,) = known(w=0.3).measurements
    names = ("error", "variance", "attention")
    once = replace(only, **{name: getattr(only, name)[1:2] for name in names})
    sentence = replace(known(w=0.3), measurements=(once,)).sentence
    assert "(linear, error 0.3);" in sentence
    assert sentence.endswith("(1 repeat).")


def test_the_sentence_is_short_however_many_targets_there_are():
    six = known(gram=0.9, moment=0.4, residual=0.5, w=0.7, w_ols=0.2, w_ridge=0.3)
    assert "w_ols best" in six.sentence
    assert "w_ridge best" in six.sentence
    assert "moment best" in six.sentence
    assert " and 3 more targets less well;" in six.sentence
    assert len(six.sentence) < 350
    assert repr(six) == f"<ProbingResult: {six.sentence}>"


def test_there_is_a_row_with_its_interval_for_every_layer(rng):
    found = result(rng)
    rows = found.rows()
    assert len(rows) == 6
    assert [row["learner"] for row in rows] == ["own"] * 3 + ["other"] * 3
    own = found.of("moment", "linear").per_layer()
    assert rows[2] == {
        "target": "moment",
        "kind": "linear",
        "learner": "own",
        "place": "learned",
        "layer": 2,
        "relative_error": own.mean[2],
        "low": own.low[2],
        "high": own.high[2],
    }
    assert len(found.table()) == len(rows)


def test_the_summary_has_the_best_layer_and_the_selectivity_there(rng):
    found = result(rng)
    own, other = found.summary()
    best = found.of("moment", "linear").best_layer()
    assert (own["best_layer"], own["selectivity"]) == (best, None)
    assert own["error"] == [
        float(part[best]) for part in found.of("moment", "linear").per_layer()
    ]
    selectivity = found.selectivity("moment", "linear", "other")
    assert other["selectivity"] == [float(part[best]) for part in selectivity]
    deeper = result(rng, control_layers=2).summary()[1]
    assert deeper["selectivity"] is None


# Figures 4 and 5.


def test_figure_4_shows_the_error_per_layer_and_the_best_of_the_control(rng):
    found = result(rng)
    figure = layers_figure(found)
    (axes,) = figure.axes
    own, other = (found.of("moment", "linear", name) for name in ("own", "other"))
    line, dashed = axes.lines
    assert labels(axes.lines) == ["linear", "linear, best of other"]
    assert xs(line) == [0, 1, 2]
    np.testing.assert_allclose(ys(line), own.per_layer().mean)
    np.testing.assert_allclose(ys(dashed), [other.per_layer().mean.min()] * 2)
    mean, low, high = own.per_layer()
    np.testing.assert_allclose(bands(axes), [(low.min(), high.max())])
    assert axes.get_title() == "XᵀY"
    assert axes.get_ylabel() == "error / variance of the target"
    assert axes.get_ylim()[0] == 0
    assert figure.get_suptitle() == (
        "What own encodes  (d = 2, 1,024 datasets, 3 repeats)"
    )
    assert found.plot().get_suptitle() == figure.get_suptitle()
    in_units = layers_figure(found, measure="error").axes[0]
    np.testing.assert_allclose(ys(in_units.lines[0]), own.per_layer("error").mean)


def test_figure_4_has_a_panel_per_target_and_one_of_them_fits_into_given_axes():
    found = known(moment=0.4, w_ols=0.3)
    assert [axes.get_title() for axes in found.plot().axes] == ["XᵀY", "w_OLS"]
    ours = Figure()
    axes, untouched = ours.subplots(1, 2)
    assert found.plot(axes) is ours
    assert axes.get_title() == "XᵀY"
    np.testing.assert_allclose(ys(axes.lines[0]), [0.9, 0.4])
    assert legend_of(axes) == ["linear"]
    assert ours.get_suptitle() == ""
    assert not untouched.lines


def test_figure_5_shows_every_control(rng):
    found = result(rng)
    figure = controls_figure(found)
    (axes,) = figure.axes
    assert labels(axes.lines) == ["linear, other"]
    other = found.of("moment", "linear", "other")
    np.testing.assert_allclose(ys(axes.lines[0]), other.per_layer().mean)
    assert figure.get_suptitle().startswith("Controls of own ")
    with refused("result", "hold controls, got none"):
        controls_figure(replace(found, controls=()))


def test_the_attention_of_the_best_layer_is_scaled_per_prefix(rng):
    found = result(rng)
    (own, other) = found.measurements
    alpha = rng.uniform(0.1, 1, own.attention.shape).astype(np.float32)
    found = replace(found, measurements=(replace(own, attention=alpha), other))
    figure = attention_figure(found, kind="linear")
    axes = figure.axes[0]
    best = own.best_layer()
    assert axes.get_title() == f"XᵀY, layer {best}"
    (image,) = axes.images
    drawn = np.ma.filled(np.ma.asarray(image.get_array()), np.nan)
    expected = alpha[:, best].mean(axis=0).T.astype(float)
    expected /= expected.max(axis=0)
    expected[3:, 0] = np.nan  # n = 1 sees the positions 0, 1, 2
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)
    with refused("kind", "be one of linear, got 'mlp'"):
        attention_figure(found, kind="mlp")


def test_figures_of_the_same_result_are_the_same_bytes(rng):
    found = result(rng)
    for draw in (layers_figure, controls_figure):
        first, again = (render(draw(found), ".svg") for _ in range(2))
        assert first == again
    drawn = layers_figure(found).axes[0].lines[0]
    assert drawn.get_color() == COLORS[0]


def test_a_notebook_shows_the_sentence_the_rows_and_the_figure(rng):
    shown = result(rng)._repr_html_()
    assert shown.startswith("<p>Probes of own read moment best in layer ")
    assert shown.count("<tr>") == 1 + 6
    assert "data:image/svg+xml;base64," in shown
