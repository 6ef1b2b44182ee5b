"""What a user reads in the log: once per run, never nothing."""


def test_a_run_says_once_what_it_reduced(unet, token_merge, denoise, messages):
    denoise(token_merge(unet("SD15")), steps=3)
    assert messages() == [
        "Token Merge: 3 layers reduced from 256 tokens to 128 queries, 128 keys and values."
    ]


def test_each_run_has_a_report_of_its_own(unet, token_merge, denoise, messages):
    model = token_merge(unet("SD15"))
    denoise(model, size=(16, 16))
    denoise(model, size=(8, 8))
    assert len(messages()) == 2
    assert "from 64 tokens" in messages()[1]


def test_a_model_without_attention_at_that_resolution_says_what_to_choose(
    unet, token_merge, denoise, messages
):
    denoise(token_merge(unet("SDXL"), max_downsample="1"))
    (message,) = messages()
    assert "no layer was reduced in this run" in message
    assert "downsampled 2x, so max_downsample has to be auto or at least 2" in message


def test_a_window_between_two_steps_says_so(unet, token_merge, denoise, messages):
    denoise(token_merge(unet("SD15"), start_percent=0.998, end_percent=0.999), steps=2)
    (message,) = messages()
    assert "none of its steps lies in 99.8% to 99.9% of the schedule" in message


def test_a_picture_of_one_row_steps_aside_with_the_reason(unet, token_merge, denoise, messages):
    denoise(token_merge(unet("SD15")), size=(1, 32))
    assert any("grid 1x32 is smaller than one 2x2 cell" in message for message in messages())
    assert any("no layer was reduced in this run" in message for message in messages())


def test_a_picture_of_one_row_is_merged_by_cells_that_fit(unet, token_merge, denoise, messages):
    denoise(token_merge(unet("SD15"), stride_y=1, stride_x=4), size=(1, 32))
    assert "3 layers reduced from 32 tokens to 16 queries" in messages()[0]
