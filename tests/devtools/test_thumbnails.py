"""What the pictures of the template browser are made of."""

from __future__ import annotations

from PIL import Image

from devtools import graph, picture, thumbnails

RED, BLUE = (Image.new("RGB", (8, 8), colour) for colour in ("red", "blue"))


def test_every_example_has_a_thumbnail():
    assert [one.path for one in thumbnails.THUMBNAILS] == list(graph.EXAMPLES)


def test_the_original_is_on_the_left_and_ours_on_the_right():
    sheet = thumbnails._draw(["a line"], [RED], [BLUE])
    assert sheet.getpixel((100, 100)) == (255, 0, 0)
    assert sheet.getpixel((sheet.width - 100, 100)) == (0, 0, 255)


def test_a_video_is_shown_by_its_first_and_last_and_two_more_frames():
    frames = [Image.new("RGB", (8, 8), (number, 0, 0)) for number in range(9)]
    shown = thumbnails._show(frames)
    corners = [shown.getpixel((x, y)) for y in (0, 16) for x in (0, 16)]
    assert [red for red, *_ in corners] == [0, 2, 5, 8]


def test_tiles_fill_rows_and_leave_gaps_white():
    sheet = picture.tiled([RED, BLUE, RED], 2, gap=1)
    assert sheet.size == (17, 17)
    assert sheet.getpixel((9, 0)) == (0, 0, 255)
    assert sheet.getpixel((8, 0)) == sheet.getpixel((16, 16)) == (255, 255, 255)
