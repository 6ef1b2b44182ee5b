from .featured import FEATURED, each, list_featured
from .guided_videos import UNGUIDED_VIDEOS
from .images import IMAGES
from .sampling import SampleRequest
from .small_model import SmallModel
from .unreached import UNREACHED
from .videos import VIDEOS

__all__ = [
    "FEATURED",
    "IMAGES",
    "UNGUIDED_VIDEOS",
    "UNREACHED",
    "VIDEOS",
    "SampleRequest",
    "SmallModel",
    "each",
    "list_featured",
]
