"""The device that a model is trained on."""

DEVICES = ("auto", "cpu", "cuda")


def find_device(name: str) -> str:
    r"""Returns the device of a name.

    Args:
        name (str): :obj:`"cpu"`, :obj:`"cuda"`, or :obj:`"auto"`, which is CUDA if
            PyTorch finds a device, and the CPU otherwise.
    """
    import torch  # only now, as it takes seconds

    if name not in DEVICES:
        raise ValueError(f"'device' must be one of {', '.join(DEVICES)} (got {name!r})")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        built = torch.version.cuda
        why = "PyTorch was installed without CUDA"
        if built is not None:
            why = f"PyTorch, built for CUDA {built}, finds no such device"
        raise ValueError(f"'device' must be cpu on this machine: {why} (got 'cuda')")
    return name


def fast_precision() -> str:
    """Returns the precision with the fastest matrix products on this machine.

    Processors without instructions for :obj:`bfloat16` take several times as long
    with it as with :obj:`float32`.
    """
    import torch

    if torch.cuda.is_available():
        return "bfloat16"
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    found = (getattr(torch.cpu, name, None) for name in names)
    has_instructions = any(is_supported() for is_supported in found if is_supported)
    return "bfloat16" if has_instructions else "float32"
