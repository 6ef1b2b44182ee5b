"""Captions to what ``trained.text.encode`` makes of them, without a loop over captions.

The pieces of captions are tokenized once. A caption is its pieces' tokens one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ..trained import text
from ..trained.layouts import GROUNDS, MOTIONS, RELATIONS, Layouts

LENGTH = 77
START, END = 49406, 49407


@dataclass(frozen=True)
class Captions:
    """encoder: of tokens. subjects, relations, grounds: (pieces, most tokens), -1 where a piece is
    shorter; the last subject has no tokens.
    """

    encoder: nn.Module
    subjects: Tensor
    relations: Tensor
    grounds: Tensor

    @staticmethod
    def make(names: list[str], moving: bool, device: torch.device | str = "cpu") -> Captions:
        """names: of the subjects."""
        clip = text.build_encoder()

        def tokenize(pieces: list[str]) -> Tensor:
            rows = [clip.tokenize(piece)["l"][0] for piece in pieces]
            ids = [[token for token, _ in row if token not in (START, END)] for row in rows]
            padded = pad_sequence([torch.tensor(row).long() for row in ids], True, -1)
            return padded.to(device)

        return Captions(
            clip.cond_stage_model.clip_l.transformer.to(device).requires_grad_(False),
            tokenize([*names, ""]),
            tokenize(list(MOTIONS if moving else RELATIONS)),
            tokenize(list(GROUNDS)),
        )

    @torch.no_grad()
    def encode(self, layouts: Layouts) -> Tensor:
        """(B, 77, C)."""
        pieces = (
            self.subjects[layouts.first],
            self.relations[layouts.relation],
            self.subjects[layouts.second],  # -1 is the last, which has none
            self.grounds[layouts.ground],
        )
        return self._encode(torch.cat(pieces, 1))

    @torch.no_grad()
    def encode_nothing(self) -> Tensor:
        """Of the empty caption: (1, 77, C)."""
        return self._encode(self.subjects[-1:])

    def _encode(self, tokens: Tensor) -> Tensor:
        """tokens: (B, any number), -1 where there is none."""
        order = (tokens < 0).long().argsort(dim=1, stable=True)
        tokens = tokens.gather(1, order)[:, : LENGTH - 2]
        tokens = torch.where(tokens < 0, END, tokens)
        whole = tokens.new_full((len(tokens), LENGTH), END)
        whole[:, 0] = START
        whole[:, 1 : 1 + tokens.shape[1]] = tokens
        vectors: Tensor = self.encoder(whole)[0]
        return vectors.float()
