"""Which changes of the training recipe pay? Candidates at equal cost.

    python benchmarks/candidates.py

One model (d = 8, L = 8, H = 64, up to 20 examples before a query) is trained with the
fast recipe, with each candidate alone, and with each candidate on top of the best one
(weights of positions by risk). Cost is time: a candidate whose step takes longer gets
fewer steps, by the ratio of CPU times measured first. Judged is SPD(OLS)/d at the end,
the mean over n = 1, …, 20 and at n = d, over 4,000 held-out datasets and the seeds.

What does not pay is not an option of `algoscope train`; it is kept here so that anyone
can measure it again. It takes about an hour on two cores; finished runs are kept in the
file of results, so an interrupted benchmark goes on where it stopped.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import tyro
from report import RESULTS, markdown, note, write

from algoscope.foundation.files import read_json
from algoscope.training.config import TrainingConfig

BASE = TrainingConfig(steps=3000, evaluate_every=500, save_every=500)
STEPS_PER_CALL = 100
HELD_OUT = 4000


@dataclass(frozen=True)
class Candidate:
    """A change of the recipe: other fields of the configuration, or one of these."""

    config: dict[str, Any] = field(default_factory=dict)
    peak: float = 1.0  # weight of n = d; its neighbors get half of the increase
    average: float = 0.0  # decay of an exponential average of the weights
    growth: int = 1  # of the batch, over the last 30 % of the steps
    residual: float = 1.0  # factor of the projections into the residual stream
    tied_keys: bool = False  # W_K starts as W_Q, orthogonal
    extra_tokens: int = 0  # before the sequence, an even number, learned
    newton_schulz: int = 5  # Muon's iterations


RISK = {"loss_weights": "risk"}
CANDIDATES: dict[str, Candidate] = {
    "fast recipe": Candidate(),
    "weights by risk": Candidate(RISK),
    "three times the weight at n = d": Candidate(peak=3.0),
    "risk, three times the weight at n = d": Candidate(RISK, peak=3.0),
    "risk, linear decay": Candidate(RISK | {"decay": "linear"}),
    "risk, rate 0.02": Candidate(RISK | {"learning_rate": 0.02}),
    "risk, rate 0.005": Candidate(RISK | {"learning_rate": 0.005}),
    "risk, averaged weights": Candidate(RISK, average=0.998),
    "risk, batch doubled at the end": Candidate(RISK, growth=2),
    "risk, batch of 32": Candidate(RISK | {"batch_size": 32}),
    "risk, 12 layers": Candidate(RISK | {"num_layers": 12}),
    "risk, 2 heads": Candidate(RISK | {"num_heads": 2}),
    "risk, 8 heads": Candidate(RISK | {"num_heads": 8}),
    "risk, squared ReLU": Candidate(RISK | {"activation": "squared_relu"}),
    "risk, growing dimension and length": Candidate(RISK | {"curriculum": True}),
    "risk, residual projections at 0": Candidate(RISK, residual=0.0),
    "risk, orthogonal tied keys": Candidate(RISK, tied_keys=True),
    "risk, 8 extra tokens": Candidate(RISK, extra_tokens=8),
    "risk, 8 Newton-Schulz steps": Candidate(RISK, newton_schulz=8),
    "risk, weight decay 0.01": Candidate(RISK | {"weight_decay": 0.01}),
}


@dataclass(frozen=True)
class Options:
    """Train every candidate at equal cost."""

    steps: int = BASE.steps
    """Steps of the fast recipe; the others get as much time."""
    seeds: tuple[int, ...] = (0, 1)
    """Seeds of the initial weights and of the data."""
    workers: int = 2
    """Processes, each with one core."""
    only: tuple[str, ...] = ()
    """Candidates, by default all."""
    out: Path = RESULTS / "candidates.json"
    """Where the results go."""


def _use_one_core() -> None:
    """Keep XLA to one thread; called before JAX is imported."""
    os.environ["XLA_FLAGS"] = (
        "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )


class Trainer:
    """One candidate's training: its step, and its state."""

    def __init__(self, candidate: Candidate, steps: int, seed: int):
        import equinox as eqx
        import jax.numpy as jnp
        import numpy as np
        import optax

        from algoscope.training import loop

        changes = candidate.config | {"steps": steps, "seed": seed}
        config = self.config = replace(BASE, **changes)
        self.candidate = candidate
        state = loop.initial_state(config)
        transformer = state.transformer
        layers = transformer.layers
        if candidate.residual != 1:
            scaled = [candidate.residual * w for w in (layers.w_f, layers.w_1)]
            layers = eqx.tree_at(lambda x: (x.w_f, x.w_1), layers, scaled)
        if candidate.tied_keys:
            stacked = layers.w_q.reshape(len(layers.w_q), config.hidden_size, -1)
            q = np.linalg.qr(np.asarray(stacked))[0].reshape(layers.w_q.shape)
            same = [jnp.asarray(q, jnp.float32)] * 2
            layers = eqx.tree_at(lambda x: (x.w_q, x.w_k), layers, same)
        extra = candidate.extra_tokens
        shape = (extra, config.hidden_size)
        more = np.random.default_rng(seed).normal(size=shape) / 8
        self.transformer = eqx.tree_at(
            lambda t: (t.layers, t.positions),
            transformer,
            (
                layers,
                jnp.concatenate(
                    [jnp.asarray(more, jnp.float32), transformer.positions]
                ),
            ),
        )
        self.optimizer = self._optimizer(loop, optax)
        weights = loop.position_weights(config)
        self.weights = np.ones(config.num_examples) if weights is None else weights
        d = config.dim
        gains = np.ones(config.num_examples)
        gains[d] = candidate.peak
        gains[[d - 1, d + 1]] = (1 + candidate.peak) / 2
        self.weights = (self.weights * gains).astype(np.float32)

    def _optimizer(self, loop: Any, optax: Any) -> Any:
        from optax.contrib import muon

        config = self.config
        update = muon(
            loop.learning_rate_schedule(config),
            ns_steps=self.candidate.newton_schulz,
            weight_decay=config.weight_decay,
            adam_weight_decay=config.weight_decay,
            muon_weight_dimension_numbers=loop._matrices,
        )
        return optax.chain(optax.clip_by_global_norm(config.clip), update)

    def outputs(self, transformer: Any, x: Any, y: Any) -> Any:
        """Return the predictions at every x, behind the extra tokens."""
        import jax.numpy as jnp

        from algoscope.model.tokens import encode_context

        tokens = encode_context(x, y)
        extra = self.candidate.extra_tokens
        zeros = jnp.zeros((*tokens.shape[:-2], extra, tokens.shape[-1]), tokens.dtype)
        tokens = jnp.concatenate([zeros, tokens], axis=-2)
        return transformer.outputs(tokens, slice(extra, None, 2))

    def compiled(self, batch_size: int) -> Callable:
        """Return the program of `STEPS_PER_CALL` steps."""
        import jax
        import jax.numpy as jnp
        import optax

        from algoscope.training import loop

        config, decay = self.config, self.candidate.average
        key = jax.random.key(config.seed)

        def objective(transformer: Any, data: Any, weights: Any) -> Any:
            gaps = self.outputs(transformer, data.x, data.y) - data.y
            errors = jnp.mean(gaps**2, axis=0)
            return jnp.sum(errors * weights) / jnp.sum(weights)

        def one_step(carried: Any, _: Any) -> Any:
            transformer, optimizer_state, averaged, step = carried
            step_key = jax.random.fold_in(key, step)
            keys = jax.vmap(lambda i: jax.random.fold_in(step_key, i))(
                jnp.arange(batch_size)
            )
            data, mask = loop._draw_batch(config, keys, step)
            weights = jnp.asarray(self.weights)
            if config.curriculum and mask is not None:
                weights = weights * mask
            gradient = jax.grad(objective)(transformer, data, weights)
            updates, optimizer_state = self.optimizer.update(
                gradient, optimizer_state, cast(Any, transformer)
            )
            transformer = cast(Any, optax.apply_updates(transformer, updates))
            if decay:
                averaged = jax.tree.map(
                    lambda old, new: decay * old + (1 - decay) * new,
                    averaged,
                    transformer,
                )
            return (transformer, optimizer_state, averaged, step + 1), None

        def steps(carried: Any) -> Any:
            return jax.lax.scan(one_step, carried, None, length=STEPS_PER_CALL)[0]

        return jax.jit(steps, compiler_options=loop.WIDE_VECTORS)

    def initial(self) -> Any:
        """Return what the program carries from call to call."""
        import jax.numpy as jnp

        start = self.optimizer.init(self.transformer)
        return self.transformer, start, self.transformer, jnp.zeros((), jnp.int32)

    def train(self) -> Any:
        """Return the final weights, averaged if the candidate says so."""
        carried, programs = self.initial(), {}
        for done in range(0, self.config.steps, STEPS_PER_CALL):
            late = done >= 0.7 * self.config.steps
            size = self.config.batch_size * (self.candidate.growth if late else 1)
            if size not in programs:
                programs[size] = self.compiled(size)
            carried = programs[size](carried)
        return carried[2] if self.candidate.average else carried[0]


def step_seconds(name: str) -> float:
    """Return the CPU seconds of one step, on average over the run's batch sizes."""
    import jax

    candidate = CANDIDATES[name]
    trainer = Trainer(candidate, BASE.steps, 0)
    size = trainer.config.batch_size
    program = trainer.compiled(size)
    carried = jax.block_until_ready(program(trainer.initial()))
    start = time.process_time()
    jax.block_until_ready(program(carried))
    seconds = (time.process_time() - start) / STEPS_PER_CALL
    return seconds * (0.7 + 0.3 * candidate.growth)


def train_one(name: str, steps: int, seed: int) -> dict[str, Any]:
    """Train one candidate with one seed and measure it."""
    import jax
    import numpy as np

    from algoscope.comparison.predict import held_out, predict_exactly, run_in_batches
    from algoscope.predictors import ols
    from algoscope.training.loop import task_of

    trainer = Trainer(CANDIDATES[name], steps, seed)
    start = time.process_time()
    transformer = trainer.train()
    seconds = time.process_time() - start
    config = trainer.config
    x, y = held_out(
        task_of(config),
        num_datasets=HELD_OUT,
        num_examples=config.num_examples,
        seed=77,
    )
    predict = jax.jit(lambda x, y: trainer.outputs(transformer, x, y))
    found = run_in_batches(predict, x, y, size=500)
    spd = np.mean((found - predict_exactly(ols, x, y)) ** 2, axis=0) / config.dim
    return {
        "candidate": name,
        "seed": seed,
        "steps": steps,
        "cpu_seconds": round(seconds, 1),
        "spd_mean": float(spd[1:].mean()),
        "spd_at_d": float(spd[config.dim]),
        "spd": [float(f"{value:.4g}") for value in spd],
    }


def main(options: Options) -> None:
    names = list(options.only or CANDIDATES)
    results = []
    settings: dict[str, Any] = {"steps": options.steps, "base": asdict(BASE)}
    if options.out.exists():
        saved = read_json(options.out)
        if saved["settings"]["steps"] == options.steps:
            results, settings = saved["results"], saved["settings"]
    seconds = settings.setdefault("step_seconds", {})
    with ProcessPoolExecutor(
        options.workers, get_context("spawn"), initializer=_use_one_core
    ) as pool:
        untimed = [
            n for n in {"fast recipe": 0, **dict.fromkeys(names)} if n not in seconds
        ]
        for name, each in zip(untimed, pool.map(step_seconds, untimed), strict=True):
            seconds[name] = each
            note(f"{name}: {1e3 * each:.1f} ms of CPU time per step")
        known = {(each["candidate"], each["seed"]) for each in results}
        jobs = []
        for name in names:
            ratio = seconds["fast recipe"] / seconds[name]
            steps = round(options.steps * ratio / STEPS_PER_CALL) * STEPS_PER_CALL
            for seed in options.seeds:
                if (name, seed) not in known:
                    jobs.append(pool.submit(train_one, name, steps, seed))
        for job in jobs:
            results.append(job.result())
            last = results[-1]
            note(
                f"{last['candidate']}, seed {last['seed']}: {last['spd_mean']:.4f}, "
                f"{last['spd_at_d']:.4f} at n = d"
            )
            write(options.out, settings, results)
    print(table(results))


def table(results: list[dict[str, Any]]) -> str:
    """Return the mean over seeds of each candidate, and of each seed beside it."""
    rows = []
    for name in CANDIDATES:
        found = [each for each in results if each["candidate"] == name]
        if not found:
            continue
        cells = [name, f"{found[0]['steps']:,}"]
        for key in ("spd_mean", "spd_at_d"):
            values = [each[key] for each in found]
            shown = ", ".join(f"{value:.4f}" for value in values)
            cells.append(f"**{sum(values) / len(values):.4f}** ({shown})")
        rows.append(cells)
    return markdown(["candidate", "steps", "SPD/d, n = 1–20", "SPD/d at n = d"], rows)


if __name__ == "__main__":
    main(tyro.cli(Options))
