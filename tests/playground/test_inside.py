"""The panels that open a learner: the same numbers as in Python, by every gesture."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.browser import RENDERED, opened

from algoscope.layerwise.iterations import gd_by_curvature
from algoscope.layerwise.read_outs import ReadOuts
from algoscope.model.checkpoints import locate, shipped_models
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import Swap
from algoscope.playground import play
from algoscope.playground.play import assemble
from algoscope.predictors.accelerated import newton_iterates

PANELS = ("depth", "watch", "attention", "patch")
ANSWERS = """async ([name, x, y, query]) => {
  const model = (await window.algoscope.ready).models.get(name);
  const { askLayers, runWhole } = modules["inside.js"];
  const run = runWhole(model, { x, y, query: query.map(() => 9) });
  return askLayers(model, run, [query]).layers.map((each) => each[0]);
}"""
SWAPPED = """async ([name, x, y, other, query, cells]) => {
  const model = (await window.algoscope.ready).models.get(name);
  const { runWhole } = modules["inside.js"], { swapping } = modules["patch.js"];
  const donor = runWhole(model, { x, y: other, query });
  const edit = swapping(new Set(cells), donor, model.transformer.hidden);
  return runWhole(model, { x, y, query }, { edit }).output.at(-1);
}"""
ITERATES = """([x, y, dim, steps, rate]) => {
  const { gdIterates, newtonIterates } = modules["iterates.js"];
  return [gdIterates(x, y, dim, steps, rate), newtonIterates(x, y, dim, steps)];
}"""


def in_float64(name: str) -> InContextLearner:
    """Return a shipped model, computed with in double precision, as the page does."""
    learner = InContextLearner.from_pretrained(name)
    widen = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), learner.transformer)
    return InContextLearner(widen, learner.name, task=learner.task)


def shipped_read_outs(name: str) -> ReadOuts:
    learner = InContextLearner.from_pretrained(name)
    found = ReadOuts.load(locate(name), learner)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def watched(default_file, browser):
    with opened(browser, default_file, width=1280) as watched:
        watched.page.evaluate("window.algoscope.ready.then(() => 1)")
        for panel in PANELS:
            watched.page.locator(f"#{panel} > summary").click()
        watched.page.locator("#watch-where").wait_for()
        yield watched
        assert watched.logged == []


@pytest.fixture
def page(watched):
    """The page with the line of d = 1 and nothing chosen in the panels."""
    change = """async () => {
      const app = await window.algoscope.ready;
      app.choose("linear-d1");
      const x = [[0.6], [-1.1], [1.5], [-0.4], [0.9]];
      const y = x.map(([each]) => 1.2 * each);
      app.update({ points: { x, y }, query: [1], layer: null, panels: {} });
    }"""
    watched.page.evaluate(change)
    watched.page.evaluate(RENDERED)
    return watched.page


def draw(rng, dim: int, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers that float32 holds exactly."""
    x = rng.normal(size=(examples + 1, dim))
    y = x @ rng.normal(size=dim)
    return x.astype(np.float32).astype(float), y.astype(np.float32).astype(float)


@pytest.mark.parametrize("name", ["linear-d1", "linear-d2"])
def test_answers_after_every_layer_are_those_of_the_read_outs(page, rng, name):
    learner, fitted = in_float64(name), shipped_read_outs(name)
    x, y = draw(rng, learner.dim, 6)
    states = np.asarray(learner.hidden_states(x[None], y[None]))[:, :, ::2]
    asked = [name, x[:-1].tolist(), y[:-1].tolist(), x[-1].tolist()]
    found = page.evaluate(ANSWERS, asked)
    np.testing.assert_allclose(found, fitted(states)[0, :, -1], atol=1e-9)


def test_the_shipped_read_outs_are_those_that_a_learner_fits():
    learner = InContextLearner.from_pretrained("linear-d1")
    fresh, shipped = learner.readouts(progress=False), shipped_read_outs("linear-d1")
    x, y = (
        jnp.asarray(each, jnp.float32) for each in draw(np.random.default_rng(1), 1, 9)
    )
    states = np.asarray(learner.hidden_states(x[None], y[None]))[:, :, ::2]
    np.testing.assert_allclose(fresh(states), shipped(states), atol=1e-3)


@pytest.mark.parametrize("name", shipped_models())
def test_every_shipped_model_has_read_outs_that_approach_its_own_answer(name):
    learner = InContextLearner.from_pretrained(name)
    fitted = shipped_read_outs(name)
    assert fitted.weights.shape == (learner.num_layers + 1, learner.hidden_size)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_iterates_are_those_of_python(page, rng, dim):
    x, y = rng.normal(size=(7, dim)), rng.normal(size=7)
    found = page.evaluate(ITERATES, [x.tolist(), y.tolist(), dim, 6, 1.25])
    x, y = jnp.asarray(x), jnp.asarray(y)
    expected = gd_by_curvature(6, x, y, 1.25), newton_iterates(x, y, 6)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other[:, -1], atol=1e-10)


def test_depth_is_scrubbed_by_the_keyboard_and_says_how_far_it_is(page):
    sentence = page.locator("#depth-sentence")
    assert sentence.inner_text().startswith(
        "After layer 4 of 4, a read-out of linear-d1 "
    )
    page.locator("#depth-layer").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    page.evaluate(RENDERED)
    assert sentence.inner_text().startswith("At its input, a read-out of linear-d1 ")
    assert page.evaluate("window.algoscope.ready.then((app) => app.state.layer)") == 0
    spd = "modules['depth.js'].walk(app.models.get('linear-d1'), app.state).spd.layers"
    found = page.evaluate(f"window.algoscope.ready.then((app) => {spd})")
    assert found[-1] < 0.01 < 1 < found[0]


def test_depth_draws_a_curve_a_slope_or_a_vector_and_the_distance(page):
    titles = page.locator("#depth figure svg.chart")
    labels = [each.get_attribute("aria-label") for each in titles.all()]
    assert labels == [
        "The function after layer 4, and least squares",
        "The slope after every layer or step",
        "Distance to least squares after every layer or step",
    ]
    page.evaluate("window.algoscope.ready.then((app) => app.choose('linear-d2'))")
    page.evaluate(RENDERED)
    labels = [each.get_attribute("aria-label") for each in titles.all()]
    assert labels[0] == "The weight vector after every layer or step"


def test_a_compiled_learner_says_that_it_has_no_read_outs(page):
    page.evaluate("window.algoscope.ready.then((app) => app.choose('sgd-d1'))")
    page.evaluate(RENDERED)
    assert "has no read-outs of its own" in page.locator("#depth").inner_text()


def test_the_program_is_stepped_by_buttons_keys_and_its_lines(page):
    where = page.locator("#watch-where")
    page.locator("#watch-family").select_option("theorem 1")
    page.locator("#watch .grid").focus()
    page.keyboard.press("Home")
    assert where.inner_text() == "The input"
    page.keyboard.press("ArrowRight")
    assert where.inner_text() == "Layer 1 of 9: move x"
    page.locator("#watch-next").click()
    assert where.inner_text() == "Layer 2 of 9: wᵀx"
    page.locator("#watch-back").click()
    assert where.inner_text() == "Layer 1 of 9: move x"
    page.locator("#watch li button", has_text="prediction =").click()
    assert where.inner_text() == "Layer 9 of 9: w′ᵀx₂"
    assert page.locator("#watch td.written").count() == 3
    assert page.locator("#watch li.now").count() == 1
    told = page.locator("#watch-told").inner_text()
    assert "prediction at query = w · x" in told
    assert "Written by the MLP of layer 9." in told
    assert page.locator("#watch svg.lines path").count() == 2  # from w and x


def test_a_move_shows_the_attention_that_was_used(page):
    page.locator("#watch-family").select_option("theorem 1")
    page.locator("#watch li button", has_text="move x").click()
    told = page.locator("#watch-told").inner_text()
    assert "x at y₁ = x (y₁ takes it from x₁)" in told
    assert "x₁ with 1.000" in told
    assert "exact 0.6 | computed 0.6 | difference" in told
    assert page.locator("#watch td.written").count() == 1
    page.locator("#watch tbody tr").nth(1).locator("td").last.hover()
    assert "Kept as it was." in page.locator("#watch-told").inner_text()


def test_every_number_can_be_reached_by_keys(page):
    page.locator("#watch-family").select_option("theorem 1")
    page.locator("#watch li button", has_text="prediction =").click()
    page.locator("#watch .grid").focus()
    told = page.locator("#watch-told")
    page.keyboard.press("ArrowUp")
    assert told.inner_text().startswith("g at query = ")
    page.keyboard.press("Shift+ArrowLeft")
    assert told.inner_text().startswith("g at y₁ = xe + 0.1 · w")
    assert page.locator("#watch-where").inner_text() == "Layer 9 of 9: w′ᵀx₂"


def test_play_runs_to_the_end_only_when_asked(page):
    page.locator("#watch-family").select_option("theorem 1")
    page.locator("#watch .grid").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    where = page.locator("#watch-where")
    before = where.inner_text()
    page.wait_for_timeout(1000)
    assert where.inner_text() == before  # nothing moves by itself
    page.locator("#watch-play").click()
    page.locator("#watch-where", has_text="Layer 9").wait_for()


def test_other_parameters_and_other_examples_change_what_it_computes(page):
    page.locator("#watch-family").select_option("sgd")
    result = page.locator("#watch-result")

    def answer() -> str:
        page.evaluate(RENDERED)
        return result.inner_text().split("Its answer at the query is ")[1].split(";")[0]

    seen = [answer()]
    page.locator("#watch-rate").select_option("0.2")
    page.wait_for_timeout(100)
    seen.append(answer())
    page.locator("#watch-edits input").nth(1).fill("3")
    page.keyboard.press("Tab")
    page.wait_for_timeout(100)
    seen.append(answer())
    assert len(set(seen)) == 3
    points = "window.algoscope.ready.then((app) => app.state.points.y[0])"
    assert page.evaluate(points) == 3


def test_undo_takes_a_step_back(page):
    page.locator("#watch-family").select_option("theorem 1")
    page.locator("#watch li button", has_text="move x").click()
    page.evaluate(RENDERED)
    page.locator("#undo").click()
    page.locator("#watch-where", has_text="The input").wait_for()
    page.locator("#redo").click()
    page.locator("#watch-where", has_text="Layer 1 of 9").wait_for()


def test_without_an_example_the_theorems_ask_for_one(page):
    page.locator("#watch-family").select_option("theorem 1")
    change = "app.update({ points: { x: [], y: [] } })"
    page.evaluate(f"window.algoscope.ready.then((app) => {change})")
    page.locator("#watch-result", has_text="add a point").wait_for()
    assert not page.locator("#watch .grid").is_visible()
    for panel in ("depth", "attention", "patch"):
        assert page.locator(f"#{panel} .say").inner_text()


def test_attention_is_told_at_the_pointer_and_by_keys(page):
    told = page.locator("#attention-told")
    canvas = page.locator("#attention .maps canvas").first
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    text = told.inner_text()
    assert text.startswith("Layer 1, head 1: y₁ attends to x₁ with ")
    weight = """async () => {
      const app = await window.algoscope.ready, { x, y, query } = app.state;
      const whole = [[...x, query], [...y, 0], { attention: true }];
      return app.forward("linear-d1", ...whole).attention[0][0][11];
    }"""
    assert float(text.split("with ")[1][:-1]) == pytest.approx(
        page.evaluate(weight), abs=6e-4
    )
    page.locator("#attention figure > .scroll canvas").last.focus()
    page.keyboard.press("ArrowRight")
    assert told.inner_text().startswith("After layer 1, unit 1 of x₁ is ")


def test_a_swapped_state_has_the_effect_that_it_has_in_python(page, rng):
    learner = in_float64("linear-d2")
    x, y = draw(rng, 2, 5)
    other = -y
    states = np.asarray(learner.hidden_states(x[None], other[None]))
    for layer, token in ((0, 1), (1, 3), (2, 10), (4, 10)):
        mask = np.arange(11) == token
        edit = Swap(jnp.asarray(states[:, layer]), jnp.asarray(mask))
        expected = learner.predict_edited(x[None], y[None], layer, edit)[0, -1]
        asked = [x[:-1].tolist(), y[:-1].tolist(), other[:-1].tolist()]
        cells = [f"{layer},{token}"]
        found = page.evaluate(SWAPPED, ["linear-d2", *asked, x[-1].tolist(), cells])
        assert found == pytest.approx(float(expected), abs=1e-9)


def test_a_click_swaps_a_state_and_the_address_keeps_it(page):
    sentence = page.locator("#patch-sentence")
    assert sentence.inner_text().startswith("Nothing is swapped")
    canvas = page.locator("#patch canvas")
    canvas.focus()
    for key in ("ArrowDown", *["ArrowRight"] * 10, *["ArrowDown"] * 4, "Enter"):
        page.keyboard.press(key)
    page.evaluate(RENDERED)
    text = sentence.inner_text()
    assert text.startswith("With one state swapped")
    assert ": 100 % of the way to −1.20" in text  # the last state of the query
    assert "patch" in page.evaluate("decodeURIComponent(location.hash)")
    page.locator("#patch-clear").click()
    page.evaluate(RENDERED)
    assert sentence.inner_text().startswith("Nothing is swapped")
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 90, box["y"] + 10)
    page.evaluate(RENDERED)
    assert sentence.inner_text().startswith("With one state swapped")


def test_panels_that_are_opened_at_once_stay_open(browser, default_file):
    with opened(browser, default_file, width=800) as watched:
        press = """async () => {
          await window.algoscope.ready;
          for (const each of document.querySelectorAll("summary")) each.click();
        }"""
        watched.page.evaluate(press)
        watched.page.locator("#patch-sentence").wait_for()
        watched.page.evaluate(RENDERED)
        shown = "[...document.querySelectorAll('#panels details')].map((e) => e.open)"
        assert watched.page.evaluate(shown) == [True] * 4
        assert "open=depth,watch,attention,patch" in watched.page.url
        watched.page.locator("#undo").click()  # closes the last
        watched.page.evaluate(RENDERED)
        assert watched.page.evaluate(shown) == [True, True, True, False]


@pytest.mark.parametrize(
    ("model", "dark"), [("linear-d1", False), ("linear-d2", True), ("sgd-d2", False)]
)
def test_panels_fit_on_a_phone(browser, default_file, model, dark):
    with opened(browser, default_file, width=360, dark=dark) as watched:
        page = watched.page
        choose = f"window.algoscope.ready.then((app) => app.choose('{model}'))"
        page.evaluate(choose)
        for panel in PANELS:
            page.locator(f"#{panel} > summary").click()
        page.locator("#watch-where").wait_for()
        page.evaluate(RENDERED)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert watched.logged == []


def test_a_model_of_many_inputs_is_opened_too(browser, tmp_path):
    path = tmp_path / "four.html"
    path.write_text(assemble([play("linear-d4").models[0].payload()]))
    with opened(browser, path, width=800) as watched:
        page = watched.page
        page.evaluate("window.algoscope.ready.then(() => 1)")
        for panel in PANELS:
            page.locator(f"#{panel} > summary").click()
        page.locator("#watch-result", has_text="for one and two inputs").wait_for()
        sentence = page.locator("#depth-sentence").inner_text()
        assert sentence.startswith("After layer 12 of 12, a read-out of linear-d4 is ")
        assert page.locator("#depth svg.chart").count() == 1
        assert page.locator("#attention .maps canvas").count() == 4
        assert page.locator("#patch-sentence").inner_text().startswith("Nothing is")
        assert watched.logged == []
