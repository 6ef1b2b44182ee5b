"""The figures in the demo's table."""

from __future__ import annotations

import math

import pytest
from PIL import Image

from devtools import demo, graph, picture


def test_speed_is_compared_within_each_round():
    # The machine was twice as slow in the second round: no reason for another ratio.
    unpatched = demo.TimedVariant("unpatched", {}, [2.0, 4.0])
    ours = demo.TimedVariant("ours", {}, [1.0, 2.0])
    assert ours.speedups(unpatched) == [2.0, 2.0]


def test_fewer_steps_take_the_time_of_the_node():
    assert [demo.count_fewer_steps(8, speed) for speed in (1.0, 1.6, 4.0, 100.0)] == [7, 5, 2, 1]
    unpatched = demo.TimedVariant("unpatched", {}, [2.0, 4.0])
    fewer = demo.TimedVariant("5 of 8 steps", {}, unpatched.rounds, share=5 / 8)
    assert fewer.speedups(unpatched) == [1.6, 1.6]


def test_seconds_are_of_the_steps_that_are_taken():
    assert demo.TimedVariant("5 of 8 steps", {}, [8.0, 16.0, 8.0], share=5 / 8).seconds() == 5.0


def test_difference_of_pictures():
    black, grey = (Image.new("RGB", (4, 4), (level,) * 3) for level in (0, 51))
    assert picture.psnr(grey, black) == pytest.approx(20 * math.log10(5))
    assert picture.mean_difference(grey, black) == 51
    assert picture.psnr(black, black) == math.inf
    assert picture.differences(black, grey, 2).getpixel((1, 1)) == (102, 102, 102)
    assert picture.differences(grey, black, 8).getpixel((1, 1)) == (255, 255, 255)


def test_side_by_side_shows_every_picture(tmp_path):
    red, blue = Image.new("RGB", (40, 30), "red"), Image.new("RGB", (40, 30), "blue")
    picture.save_side_by_side([red, blue], ["one\nline", "two\nlines"], tmp_path / "both.png")
    sheet = Image.open(tmp_path / "both.png")
    middle = picture.MARGIN + 15
    assert sheet.getpixel((picture.MARGIN + 20, middle)) == (255, 0, 0)
    assert sheet.getpixel((2 * picture.MARGIN + 60, middle)) == (0, 0, 255)


@pytest.mark.parametrize(
    "arguments", [["--steps", "1"], ["--rounds", "0"], ["--steps", "x"], ["--checkpoint", "none"]]
)
def test_bad_options_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        demo.main(arguments)
    assert f"argument {arguments[0]}:" in capsys.readouterr().err


def test_changing_a_graph_leaves_the_original_as_it_was():
    prompt = {"1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "a"}}}
    assert graph.with_demo_model(prompt)["1"]["class_type"] == "TokenMergeDemoModel"
    assert graph.with_values(prompt, graph.LOADER, ckpt_name="b")["1"]["inputs"] == {
        "ckpt_name": "b"
    }
    assert prompt == {"1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "a"}}}
