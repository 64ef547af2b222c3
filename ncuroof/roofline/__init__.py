"""Compute the roofline from canonical quantities: ceilings, points, and each kernel's roofline time."""

from ncuroof.roofline.bounds import LEAST_UNCOUNTED_FRAC, bound
from ncuroof.roofline.ceiling_table import ceilings
from ncuroof.roofline.gpu_names import profile_by_name
from ncuroof.roofline.gpu_profiles import GpuProfile, is_partial, load_profiles, match_profile
from ncuroof.roofline.instructions import INSTRUCTION_DEFINITION, instruction_ceilings, place_instructions
from ncuroof.roofline.roofs import Roofline, place, roofline, sheet_dram_bandwidth

__all__ = [
    "INSTRUCTION_DEFINITION",
    "LEAST_UNCOUNTED_FRAC",
    "GpuProfile",
    "Roofline",
    "bound",
    "ceilings",
    "instruction_ceilings",
    "is_partial",
    "load_profiles",
    "match_profile",
    "place",
    "place_instructions",
    "profile_by_name",
    "roofline",
    "sheet_dram_bandwidth",
]
