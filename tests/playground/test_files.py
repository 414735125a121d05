"""One's own data and one's own model; damaged and hostile ones are refused or shown."""

import json
import re
import struct
from base64 import b64encode

import pytest
from support.playing import played

from algoscope.construction.algorithms import SGD
from algoscope.construction.build import Construction, save_construction
from algoscope.model.checkpoints import MODELS
from algoscope.playground import play
from algoscope.playground.play import PAGE, PARTS, assemble

HERE = MODELS / "linear-d1"
CONFIG = (HERE / "config.json").read_bytes()
WEIGHTS = (HERE / "model.safetensors").read_bytes()
HOSTILE = (
    "<img src=x onerror=document.title='hacked'>",
    "</script><script>document.title='hacked'</script>",
    "<!--<script>",
    "{script} {models} ${document.title='hacked'}",
    "__proto__",
)
DROP = """async (app, files) => {
  const transfer = new DataTransfer();
  for (const [name, content] of files) {
    const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
    transfer.items.add(new File([bytes], name));
  }
  const about = { dataTransfer: transfer, cancelable: true };
  window.dispatchEvent(new DragEvent("drop", about));
}"""


# The table opens with the present examples in it.
SHOWN = "() => document.querySelector('#table-text').value !== ''"


def drop(watched, files: dict[str, bytes]) -> str:
    """Drop files on the page, and return what the page says when it has read them."""
    watched.page.evaluate("document.getElementById('status').textContent = '…'")
    content = [[name, b64encode(each).decode()] for name, each in files.items()]
    watched.evaluate(DROP, content)
    watched.wait_for("document.getElementById('status').textContent !== '…'")
    return watched.status


def test_a_pasted_and_a_dropped_table_replace_the_examples(default_file, browser):
    with played(browser, default_file) as watched:
        page = watched.page
        page.locator("#paste summary").click()
        watched.wait_for(SHOWN)
        page.locator("#table-text").fill("x,y\n1,2\n-1;-2\n0.5\t1\n")
        page.locator("#use-table").click()
        assert watched.status == "3 examples are read."
        assert watched.state["x"] == [[1], [-1], [0.5]]
        assert watched.state["y"] == [2, -2, 1]
        said = drop(watched, {"two.csv": b"a,b,c\r\n1,0,3\r\n0,1,-1\r\n"})
        assert said == "2 examples are read."
        assert watched.state["model"] == "linear-d2"
        assert watched.state["x"] == [[1, 0], [0, 1]]
        page.evaluate(
            """() => {
              const clipboardData = new DataTransfer();
              clipboardData.setData("text", "4 8");
              document.body.dispatchEvent(
                new ClipboardEvent("paste", { clipboardData, bubbles: true }));
            }"""
        )
        assert watched.state["x"] == [[4]]


BAD_TABLES = {
    "": "The table is empty.",
    "x,y\n1,<b>2</b>": "Row 1 of the table is not numbers: “1,<b>2</b>”.",
    "1,2\n3": "Row 2 of the table has 1 numbers; each needs x and y.",
    "1\n2": "Row 1 of the table has 1 numbers; each needs x and y.",
    "1,1e300": "Row 1 of the table is not numbers: “1,1e300”.",
    "1,2\n" * 21: "The table has 21 examples; this learner takes at most 20.",
    "1,2,3,4,5": "The table has 4 inputs; no learner of this page takes as many.",
    "1,=cmd|'/c calc'!A1": "Row 1 of the table is not numbers: “1,=cmd|'/c calc'!A1”.",
    "1," * 600_000: "The table is too long.",
    "1," * 1000
    + "2": "The table has 1000 inputs; no learner of this page takes as many.",
}


def test_a_bad_table_gives_one_sentence_and_changes_nothing(default_file, browser):
    with played(browser, default_file) as watched:
        before = watched.state
        watched.page.locator("#paste summary").click()
        watched.wait_for(SHOWN)
        for table, said in BAD_TABLES.items():
            watched.page.locator("#table-text").fill(table)
            watched.page.locator("#use-table").click()
            assert watched.status == said
            assert watched.state == before


def test_a_dropped_model_is_chosen_and_answers(default_file, browser, tmp_path):
    with played(browser, default_file) as watched:
        drop(watched, {"config.json": CONFIG, "model.safetensors": WEIGHTS})
        assert watched.state["model"] == "linear-d1 (2)"
        assert "the transformer linear-d1 (2) answers like least" in watched.sentence
        assert watched.page.locator("#strip").is_hidden()  # it has no read-outs
        whole = {path.name: path.read_bytes() for path in HERE.glob("*.*")}
        drop(watched, dict(sorted(whole.items(), reverse=True)))
        stopped = """(app) => ["linear-d1", "linear-d1 (3)"].map((name) => {
          app.update({ model: name, layer: 2 });
          return app.learner.ask([[0.7]])[0];
        })"""
        assert watched.page.locator("#strip").is_visible()
        shipped, dropped = watched.evaluate(stopped)
        assert dropped == pytest.approx(shipped, abs=1e-12)
        model = {"config.json": CONFIG, "model.safetensors": WEIGHTS}
        said = drop(watched, model | {"readouts.safetensors": WEIGHTS})
        assert said == "The read-outs are not those of this model."
        written = Construction(SGD(learning_rate=0.2), 2, 4)
        save_construction(written, written.compile(), tmp_path)
        names = ("config.json", "model.safetensors")
        drop(watched, {name: (tmp_path / name).read_bytes() for name in names})
        assert watched.state["model"] == written.name
        assert watched.evaluate("(app) => [app.model.kind, app.dim]") == ["compiled", 2]
        assert watched.state["parameter"]["sgd"] == pytest.approx(0.2)
        assert watched.sentence.startswith("sgd(0.2, 0), compiled takes at most 4")
        watched.page.get_by_role("button", name="Delete example 6").click()
        watched.page.get_by_role("button", name="Delete example 5").click()
        assert "compiled answers like SGD: less than 0.000001" in watched.sentence


def test_a_model_of_many_inputs_has_data_bars_and_a_cut(default_file, browser):
    directory = MODELS / "linear-d8"
    names = ("config.json", "model.safetensors")
    with played(browser, default_file) as watched:
        drop(watched, {name: (directory / name).read_bytes() for name in names})
        assert watched.evaluate("(app) => [app.model.name, app.dim]") == [
            "linear-d8",
            8,
        ]
        assert (
            "the transformer linear-d8 answers like least squares" in watched.sentence
        )
        assert watched.page.locator("#points .point").count() == 0
        assert watched.page.locator(".plot path.line").count() >= 3
        before = watched.state["y"]
        watched.page.locator("#draw").click()
        assert watched.state["y"] != before
        watched.page.locator("input[name=inputs][value='1']").check()
        assert watched.state["model"] == "linear-d1"


def tampered(change) -> bytes:
    (size,) = struct.unpack("<Q", WEIGHTS[:8])
    header = json.loads(WEIGHTS[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + WEIGHTS[8 + size :]


def rename(header) -> None:
    header["other"] = header.pop("w_e")


def outside(header) -> None:
    header["w_e"]["data_offsets"] = [10**9, 10**9 + 256]


def negative(header) -> None:
    header["w_e"]["data_offsets"] = [-256, 0]


def half(header) -> None:
    header["w_e"]["dtype"] = "F16"


def other_shape(header) -> None:
    header["w_e"]["shape"] = [2, 32]


def overlapping(header) -> None:
    for copy in range(100):
        header[f"copy {copy}"] = header["layers.w_1"]


def no_room(header) -> None:
    header["positions"] |= {"shape": [0, 32], "data_offsets": [0, 0]}


def named(name: str, **changes) -> bytes:
    return changed_config(name=name, **changes)


def changed_config(**changes) -> bytes:
    return json.dumps({**json.loads(CONFIG), **changes}).encode()


def many_inputs() -> bytes:
    (size,) = struct.unpack("<Q", WEIGHTS[:8])
    header = json.loads(WEIGHTS[8 : 8 + size])
    hidden = header["w_e"]["shape"][0]
    end, more = len(WEIGHTS) - 8 - size, 4 * hidden * 100
    header["w_e"] |= {"shape": [hidden, 100], "data_offsets": [end, end + more]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + WEIGHTS[8 + size :] + bytes(more)


ENDLESS = b'{"name": ' + b"[" * 300_000
DAMAGED = [
    (CONFIG, b"", "The weights are not a whole safetensors file: it has 0 bytes."),
    (CONFIG, WEIGHTS[:5000], r"safetensors file: .* lies outside of it\."),
    (CONFIG, b"\xff" * 64, "file: its header is longer than the file."),
    (CONFIG, struct.pack("<Q", 4) + b"{{{{", "file: its header is not JSON."),
    (CONFIG, struct.pack("<Q", 4) + b"null", "header is not a JSON object."),
    (CONFIG, tampered(rename), "not hold a saved transformer: w_e is missing."),
    (CONFIG, tampered(outside), r"file: \"w_e\" lies outside of it\."),
    (CONFIG, tampered(negative), r"file: \"w_e\" has no place in it\."),
    (CONFIG, tampered(half), r"file: \"w_e\" is neither F32 nor F64\."),
    (CONFIG, tampered(other_shape), "transformer: positions has the shape"),
    (CONFIG, tampered(overlapping), "file: its tensors overlap."),
    (CONFIG, tampered(no_room), "transformer: it has no room for an example."),
    (CONFIG, many_inputs(), "The model has 99 inputs; this page takes at most 64."),
    (b"{", WEIGHTS, r"config.json is not JSON\."),
    (ENDLESS, WEIGHTS, r"config.json is not JSON\."),
    (b" " * 1_000_001, WEIGHTS, r"config.json is too long for a model's\."),
    (b"[]", WEIGHTS, r"config.json is not a JSON object\."),
    (b"{}", WEIGHTS, "transformer: config.json has no block."),
    (
        changed_config(block={"activation": "constructor"}),
        WEIGHTS,
        "transformer: its activation is unknown.",
    ),
    (
        changed_config(block={"attention_scale": "1"}),
        WEIGHTS,
        "transformer: its scale is no number.",
    ),
    (
        re.sub(rb'(?<="attention_scale": )[^,]*', b"1e999", CONFIG),
        WEIGHTS,
        "transformer: its scale is no number.",
    ),
    (CONFIG, None, "A model is two files: drop config.json and model.safetensors"),
    (None, WEIGHTS, "A model is two files: drop config.json and model.safetensors"),
]


def test_a_damaged_model_gives_one_sentence_and_changes_nothing(default_file, browser):
    with played(browser, default_file) as watched:
        before = watched.state
        for config, weights, said in DAMAGED:
            files = {"config.json": config, "model.safetensors": weights}
            given = {name: each for name, each in files.items() if each is not None}
            found = drop(watched, given)
            assert re.search(said, found), found
            assert found.count(".") <= 3
            assert "\n" not in found
            assert watched.state == before
        said = drop(watched, {"model.pt": b"\x80\x02."})
        assert said == "Drop config.json with model.safetensors, or a table as .csv."
        drop(watched, {"config.json": CONFIG, "model.safetensors": WEIGHTS})
        assert "linear-d1 (2) answers like least squares" in watched.sentence


def test_odd_facts_in_a_config_are_left_out(default_file, browser):
    """A name that cannot be written, that of a textbook predictor, odd numbers."""
    training = {"prior_variance": "many", "noise_variance": -1, "task": {}}
    construction = {"algorithm": "ridge", "parameters": {"penalty": "0.1"}}
    dropped = {
        "ols": ("ols (2)", named("ols")),
        "\ud800": ("\ufffd", named("\ud800")),
        "blank": ("your model", named("  ")),
        "long": ("é" * 60, named("é" * 5000, training=training)),
        "number": ("your model (2)", changed_config(name=5, construction=construction)),
    }
    with played(browser, default_file) as watched:
        for name, config in dropped.values():
            drop(watched, {"config.json": config, "model.safetensors": WEIGHTS})
            assert watched.state["model"] == name
            assert f"{name} answers like least squares" in watched.sentence
            watched.page.locator("input[name=beside]").first.check()
            watched.page.locator("#undo").click()
        assert watched.state["parameter"]["ridge"] == 0.5
        assert "NaN" not in watched.page.inner_text("main")


def test_answers_that_overflow_are_said_to(default_file, browser):
    (size,) = struct.unpack("<Q", WEIGHTS[:8])
    header = json.loads(WEIGHTS[8 : 8 + size])
    start, end = (8 + size + place for place in header["w_o"]["data_offsets"])
    huge = struct.pack("<f", 3e38) * ((end - start) // 4)
    weights = bytearray(WEIGHTS)
    weights[start:end] = huge
    with played(browser, default_file) as watched:
        for _ in range(2):
            drop(watched, {"config.json": CONFIG, "model.safetensors": bytes(weights)})
        assert "linear-d1 (3)" in watched.sentence
        for panel in ("depth", "attention", "patch"):
            watched.page.locator(f"#{panel} > summary").click()
        watched.page.locator("[data-preset=line]").click()
        assert (
            "answers like none" in watched.sentence or "too large" in watched.sentence
        )


@pytest.mark.parametrize("policy", [True, False])
def test_hostile_names_are_shown_and_never_executed(tmp_path, browser, policy):
    payload = [model.payload() for model in play("linear-d1").models]
    named = [{**payload[0], "name": name} for name in HOSTILE]
    text = assemble(named)
    if not policy:  # without the policy, escaping alone must hold
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    path = tmp_path / "page.html"
    path.write_text(text)
    with played(browser, path) as watched:
        page = watched.page
        assert page.title() == "algoscope playground"
        shown = page.inner_text("#choice")
        for name in HOSTILE:
            assert name in shown
            watched.evaluate("(app, name) => app.choose(name)", name)
            assert f"the transformer {name} answers like" in watched.sentence
        config = changed_config(name=HOSTILE[0] * 9)
        drop(watched, {"config.json": config, "model.safetensors": WEIGHTS})
        assert page.title() == "algoscope playground"
        assert page.locator("img, iframe, object, embed, link, form").count() == 0
        ours = (PARTS / PAGE).read_text().count("<script")
        assert page.locator("script").count() == ours


def test_the_policy_permits_the_page_and_nothing_else(default_file, tmp_path, browser):
    text = default_file.read_text()
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert len(policy) == 1
    assert "default-src 'none'" in policy[0]
    assert "unsafe-eval" not in policy[0]
    assert "script-src 'sha256-" in policy[0]
    injected = (
        "<script>document.title = 'hacked'</script>"
        "<img src=x onerror=\"document.title = 'hacked'\">"
        "<link rel=stylesheet href=http://127.0.0.1:9/a.css>"
    )
    path = tmp_path / "page.html"
    path.write_text(text.replace("<main", f"{injected}<main", 1))
    with browser.new_context() as context:
        page = context.new_page()
        stopped: list[str] = []
        page.on("console", lambda message: stopped.append(message.text))
        page.goto(path.as_uri())
        page.evaluate("window.algoscope.ready.then(() => 0)")
        assert page.title() == "algoscope playground"
        assert sum("violates" in line for line in stopped) >= 3
        failed = page.evaluate(
            "fetch('http://127.0.0.1:9/').then(() => '', (error) => String(error))"
        )
        assert failed
