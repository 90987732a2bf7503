"""The engine on CUDA GPUs."""
