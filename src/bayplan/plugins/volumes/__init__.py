"""What the volume plugins share: claims of a pod, CSI migration, CSI nodes as rows, changes of stored objects."""
