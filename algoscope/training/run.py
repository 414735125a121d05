"""A training run on disk: one directory that can be interrupted at any moment.

    start/             the learner that training starts from, if it is not random
    config.json        what is trained; the run id is a hash of it
    metrics.jsonl      a line per compiled call: step, loss, seconds; SPD when measured
    state.safetensors  the training state of the last save
    model.safetensors  the finished model, with evaluation.json and README.md, its card

A killed run loses the steps since the last save and nothing else; resumed, it ends with
bit-identical weights to one that was never interrupted.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import current_thread, main_thread

import jax
from jax.sharding import Mesh

from algoscope.comparison.compare import compare
from algoscope.comparison.metrics import squared_prediction_difference
from algoscope.comparison.predict import held_out, predict_all, predict_exactly
from algoscope.foundation import provenance
from algoscope.foundation.files import (
    DamagedFileError,
    load_arrays,
    read_json,
    reading,
    save_arrays,
    write_json,
)
from algoscope.foundation.locks import held, owner
from algoscope.foundation.progress import Progress, shown, silent
from algoscope.foundation.text import short
from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.model.checkpoints import (
    CARD,
    CONFIG,
    EVALUATION,
    WEIGHTS,
    named_leaves,
    restore_leaves,
)
from algoscope.model.learner import InContextLearner
from algoscope.model.transformer import Transformer
from algoscope.predictors import bayes, ols
from algoscope.training.card import model_card
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.log import TrainingLog
from algoscope.training.loop import (
    TrainingDivergedError,
    TrainingState,
    initial_state,
    task_of,
    train_steps,
)
from algoscope.training.start import START, load_start, saved_start, starting_from

STATE = "state.safetensors"
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")  # a system has not all of them
EVALUATION_DATASETS = 1000  # for the curve during training


class InterruptedRunError(KeyboardInterrupt):
    """Training stopped on request (Ctrl-C); the state was saved."""


def train(
    config: TrainingConfig | str = "demo",
    out: Path | str | None = None,
    *,
    start: InContextLearner | str | Path | None = None,
    name: str | None = None,
    evaluation_datasets: int = 10_000,
    progress: Progress | bool = True,
) -> InContextLearner:
    """Train a learner and return it: a preset by name, or a configuration.

    With a `start`, training goes on from that learner, such as one that `build` made
    `trainable`; its sizes take the place of those in the configuration.

    The run is saved in `out`, by default `runs/NAME-ID`. If that directory holds the
    same run already, it is resumed from its last save, or loaded if it is finished.
    Ctrl-C saves and raises `InterruptedRunError`.

    Example:
        >>> import tempfile
        >>> import algoscope as asc
        >>> config = asc.TrainingConfig(
        ...     dim=1, num_examples=3, num_layers=1, hidden_size=8, num_heads=1,
        ...     steps=2, steps_per_call=2, evaluate_every=2, save_every=2,
        ... )
        >>> out = tempfile.mkdtemp()
        >>> asc.train(config, out, evaluation_datasets=10).task.dim
        1
    """
    require_at_least("evaluation_datasets", evaluation_datasets, 1)
    if isinstance(config, str):
        name, config = name or config, preset(config)
    if start is not None:
        start = load_start(start)
        config = starting_from(config, start)
    name = name or f"d{config.dim}"
    directory = Path(out or Path("runs") / f"{name}-{config.run_id}")
    run = Run.open(directory, config, resume=True, start=start)
    with locked(directory), shown(progress) as report:
        execute(
            run, name=name, progress=report, evaluation_datasets=evaluation_datasets
        )
    return InContextLearner.from_pretrained(directory)


class Run:
    """The files of one run."""

    def __init__(self, directory: Path, config: TrainingConfig):
        self.directory = directory
        self.config = config

    @classmethod
    def open(
        cls,
        directory: Path,
        config: TrainingConfig,
        *,
        resume: bool = False,
        start: InContextLearner | None = None,
    ) -> "Run":
        """Return the run in this directory; a new one keeps a copy of its `start`."""
        run = cls(directory, config)
        if (directory / CONFIG).exists():
            found = TrainingConfig.from_dict(
                read_json(directory / CONFIG).get("training")
            )
            if found != config:
                ours, theirs = asdict(config), asdict(found)
                names = [name for name in ours if ours[name] != theirs[name]]
                changes = ", ".join(f"{name}={theirs[name]}" for name in names)
                raise InvalidValueError(
                    "out",
                    f"be new or hold run {config.run_id}",
                    f"run {found.run_id} in {directory}, which has {changes}",
                    "Choose another directory.",
                )
            if not resume:
                raise InvalidValueError(
                    "out",
                    "be a new directory",
                    f"{directory}, which holds this run",
                    "Add --resume to resume it.",
                )
        else:
            directory.mkdir(parents=True, exist_ok=True)
            if start is not None:
                start.save_pretrained(directory / START)
            about = {"run_id": config.run_id, "training": asdict(config)}
            write_json(directory / CONFIG, {"format": "algoscope", **about})
        return run

    @property
    def finished(self) -> bool:
        """Whether the final model is there."""
        parts = (WEIGHTS, CARD, EVALUATION)
        return all((self.directory / part).exists() for part in parts)

    def load_state(self) -> tuple[TrainingState, float]:
        """Return the saved state and the seconds trained, or the initial state."""
        config = self.config
        start = saved_start(self.directory, config) if config.start else None
        state = initial_state(config, start=start)
        path = self.directory / STATE
        if not path.exists():
            return state, 0.0
        arrays, metadata = load_arrays(path)
        if metadata.get("run_id") != self.config.run_id:
            problem = f"is not the training state of run {self.config.run_id}"
            raise DamagedFileError(path, problem)
        with reading(path, "does not say how long was trained"):
            seconds = max(float(metadata["seconds"]), 0.0)
        return restore_leaves(state, arrays, path), seconds

    def save_state(self, state: TrainingState, seconds: float) -> None:
        """Replace the saved state; the rows that it includes reach the disk first."""
        self.log.sync()
        metadata = {"run_id": self.config.run_id, "seconds": repr(seconds)}
        save_arrays(self.directory / STATE, named_leaves(state), metadata)

    @property
    def log(self) -> TrainingLog:
        """What was measured during training."""
        return TrainingLog(self.directory)

    def finish(
        self, state: TrainingState, seconds: float, name: str, num_datasets: int
    ) -> None:
        """Measure the final model and write it with its card."""
        config, metrics = self.config, self.log.rows()
        transformer = jax.tree.map(jax.numpy.asarray, state.transformer)
        learner = InContextLearner(transformer, name, task=task_of(config))
        comparison = compare(learner, num_datasets=num_datasets, progress=False)
        comparison.save(self.directory / EVALUATION)
        about = {
            "run_id": config.run_id,
            "training": asdict(config),
            "seconds": metrics[-1]["seconds"] if metrics else seconds,
            "versions": provenance(),
        }
        card = model_card(name, config, metrics, comparison)
        learner.save_pretrained(self.directory, card=card, about=about)


def execute(
    run: Run,
    *,
    name: str,
    mesh: Mesh | None = None,
    progress: Progress = silent,
    evaluation_datasets: int = 10_000,
) -> None:
    """Train a run from its last save to its end, and write the finished model.

    In a computation of several processes all of them call this; the first one writes.
    """
    if run.finished:
        return
    config = run.config
    writes = jax.process_index() == 0
    start_state, before = run.load_state()
    if writes:
        run.log.forget_after(int(start_state.step))
    evaluate = evaluator(config)
    measured: dict[str, float] = {}
    state = start_state
    start = time.perf_counter()

    def seconds() -> float:
        return before + time.perf_counter() - start

    def save(state: TrainingState) -> None:
        if writes:
            run.save_state(state, seconds())

    with _noting_interrupts() as interrupted:
        try:
            for state, losses in train_steps(config, start_state, mesh):
                step, last = int(state.step), int(state.step) == config.steps
                row = {"step": step, "loss": float(losses.mean())}
                if step % config.evaluate_every == 0 or last:
                    measured = evaluate(state.transformer)
                    row |= measured
                row["seconds"] = round(seconds(), 3)
                if writes:
                    run.log.add(row)
                stop = interrupted() and not last
                if step % config.save_every == 0 or last or stop:
                    save(state)
                spd = short(measured.get("spd_ols"))
                note = f"loss {row['loss']:.4f}  SPD(OLS)/d {spd}"
                progress(f"training {name}", step, config.steps, note)
                if stop:
                    raise InterruptedRunError(f"stopped at step {step}, saved.")
        except TrainingDivergedError as error:
            save(error.state)
            raise
    if writes:
        run.finish(state, seconds(), name, evaluation_datasets)


def evaluator(config: TrainingConfig) -> Callable[[Transformer], dict[str, float]]:
    """Return a function that measures a transformer on fixed held-out datasets.

    It returns SPD/d to OLS and to the Bayes predictor of linear regression: the mean
    over the datasets and all prefixes with at least one example.
    """
    x, y = held_out(
        task_of(config),
        num_datasets=EVALUATION_DATASETS,
        num_examples=config.num_examples,
        seed=config.seed,
    )
    if config.task == "control":
        best = x.sum(axis=-1)  # w = 1 is known
    else:
        predictor = bayes(
            noise_variance=config.noise_variance, prior_variance=config.prior_variance
        )
        best = predict_exactly(predictor, x, y)
    references = {"spd_ols": predict_exactly(ols, x, y), "spd_bayes": best}

    def evaluate(transformer: Transformer) -> dict[str, float]:
        found = predict_all(InContextLearner(transformer), x, y)
        distances = {
            name: squared_prediction_difference(found, reference, config.dim)
            for name, reference in references.items()
        }
        return {name: float(spd[:, 1:].mean()) for name, spd in distances.items()}

    return evaluate


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a run's lock while inside; reject a run that another process trains."""
    with held(directory) as free:
        if not free:
            host, process = owner(directory) or ("another host", "one")
            rule = "be a run that no other process is training"
            training = f"{directory}, which process {process} on {host} is training"
            raise InvalidValueError("out", rule, training)
        yield


@contextmanager
def _noting_interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C, SIGTERM or SIGHUP into a note; a second one ends as usual.

    With several processes none may stop alone, so there signals are left as they are.
    A signal that is ignored, as under nohup, remains so, but for Ctrl-C: the workers of
    a sweep ignore it elsewhere, and are asked by it to save.
    """
    noted = []
    if jax.process_count() > 1 or current_thread() is not main_thread():
        yield lambda: False
        return

    def note(number, frame):
        noted.append(number)
        restore()

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    known = {name: getattr(signal, name, None) for name in STOPPING}
    previous = {
        number: signal.getsignal(number)
        for number in known.values()
        if number is not None
        and (number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN)
    }
    for number in previous:
        signal.signal(number, note)
    try:
        yield lambda: bool(noted)
    finally:
        restore()
