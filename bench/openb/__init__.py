"""The openb trace, scheduled by the GPU sharing plugins on a virtual clock, beside the published results."""
