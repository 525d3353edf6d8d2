"""gradfix finds, rewrites and proves the places where PyTorch code breaks its own gradients."""
