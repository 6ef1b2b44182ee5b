from .family import Family
from .images import IMAGES
from .sampling import Run
from .unreached import UNREACHED
from .videos import VIDEOS

__all__ = ["IMAGES", "UNREACHED", "VIDEOS", "Family", "Run"]
