"""From canonical quantities to the roofline: ceilings, points, and how close each kernel could come."""

from ncuroof.roofline.bounds import bound
from ncuroof.roofline.ceilings import ceilings
from ncuroof.roofline.gpu_profiles import GpuProfile, is_partial, load_profiles, match_profile, profile_by_name
from ncuroof.roofline.points import place
from ncuroof.roofline.roofs import Roofline, roofline

__all__ = [
    "GpuProfile",
    "Roofline",
    "bound",
    "ceilings",
    "is_partial",
    "load_profiles",
    "match_profile",
    "place",
    "profile_by_name",
    "roofline",
]
