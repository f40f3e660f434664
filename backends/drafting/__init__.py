"""Speculative decoding that every backend shares: drafters, the cost of passes, and the choice of draft lengths.

Pure: it knows no model, no sampler and no clock. What it proposes is checked by the model, so that it changes when
tokens come and never which.
"""

from backends.drafting.costs import CPU_GUESS, GPU_GUESS, Part, Parts, PassCosts
from backends.drafting.drafts import NOTHING, Draft, Drafter
from backends.drafting.lookup import PromptLookup
from backends.drafting.odds import Experience, Odds
from backends.drafting.speculator import DraftModel, Layout, Proposal, Speculator, Wish, one_part

__all__ = [
    "CPU_GUESS",
    "GPU_GUESS",
    "NOTHING",
    "Draft",
    "DraftModel",
    "Drafter",
    "Experience",
    "Layout",
    "Odds",
    "Part",
    "Parts",
    "PassCosts",
    "PromptLookup",
    "Proposal",
    "Speculator",
    "Wish",
    "one_part",
]
