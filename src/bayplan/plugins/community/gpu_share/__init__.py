"""GPU sharing: pods get whole devices or thousandths of one, and six policies choose the node and the device."""

from bayplan.plugins.community.gpu_share.fragmentation import TypicalPod, typical_pods
from bayplan.plugins.community.gpu_share.plugin import (
    GpuShareBestFit,
    GpuShareClustering,
    GpuShareDotProd,
    GpuShareFGD,
    GpuSharePacking,
    GpuShareRandom,
)

__all__ = [
    "GpuShareBestFit",
    "GpuShareClustering",
    "GpuShareDotProd",
    "GpuShareFGD",
    "GpuSharePacking",
    "GpuShareRandom",
    "TypicalPod",
    "typical_pods",
]
