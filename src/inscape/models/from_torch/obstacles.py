"""Operations that stand in the way of a graph: what a person calls them, and what is true of them."""

from torch import nn

from inscape.models.graph.network import (
    Foreign,
    IsRandom,
    Jumps,
    NotPiecewiseAffine,
    NotSupportedYet,
    Unreadable,
)

_NAMES = {
    "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm",
    "native_batch_norm": "batch_norm",
    "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_no_training": "batch_norm",
    "cudnn_batch_norm": "batch_norm",
    "native_dropout": "dropout",
    "_fused_rms_norm": "rms_norm",
    "_prelu_kernel": "prelu",
    "rrelu_with_noise": "rrelu",
    "constant_pad_nd": "pad",
    "max_pool2d_with_indices": "max_pool2d",
    "max_pool3d_with_indices": "max_pool3d",
    "_adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "_adaptive_avg_pool3d": "adaptive_avg_pool3d",
    "log_sigmoid_forward": "log_sigmoid",
    "linalg_vector_norm": "a norm",
    "_cdist_forward": "cdist",
    **dict.fromkeys(["_fft_r2c", "_fft_c2r", "_fft_c2c"], "a Fourier transform"),
    "_pdist_forward": "pdist",
    "_linalg_svd": "svd",
    "_to_copy": "a conversion",
    "_local_scalar_dense": "item",
    "_unsafe_view": "view",
    "_reshape_alias": "reshape",
    "im2col": "unfold",
    "col2im": "fold",
    "convolution": "a convolution",
    "_convolution": "a convolution",
    "addmm": "a matrix product",
    "mm": "a matrix product",
    "mv": "a matrix product",
    "bmm": "a matrix product",
    "baddbmm": "a matrix product",
    "_transformer_encoder_layer_fwd": "transformer_encoder_layer",
    "_native_multi_head_attention": "attention",
    "_scaled_dot_product_flash_attention": "attention",
    "_scaled_dot_product_flash_attention_for_cpu": "attention",
    "_scaled_dot_product_efficient_attention": "attention",
    "_scaled_dot_product_attention_math": "attention",
    "scaled_dot_product_attention": "attention",
    "_thnn_fused_lstm_cell": "lstm",
    "_thnn_fused_gru_cell": "gru",
    "bernoulli": "dropout in training mode",
}
"""ATen's names -> those that people know, where they differ by more than an underscore in front."""

_CURVED = (
    "_cdist_forward _fused_rms_norm _linalg_svd _log_softmax "
    "_native_multi_head_attention _pdist_forward _scaled_dot_product_attention_math "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention "
    "_scaled_dot_product_flash_attention_for_cpu _softmax _thnn_fused_gru_cell _thnn_fused_lstm_cell "
    "_transformer_encoder_layer_fwd acos acosh asin asinh atan atan2 atanh celu cos cosh "
    "cosine_similarity cross cumprod digamma dot elu erf erfc erfinv exp exp2 expm1 frexp gelu glu "
    "hardswish hypot lgamma linalg_inv_ex linalg_qr linalg_vector_norm log log10 log1p log2 "
    "log_sigmoid_forward logaddexp logaddexp2 logcumsumexp logit logsumexp mish native_group_norm "
    "native_layer_norm norm polar pow prod reciprocal rsqrt scaled_dot_product_attention selu sigmoid "
    "silu sin sinc sinh softplus special_xlog1py sqrt square std std_mean tan tanh var var_mean vdot "
    "xlogy"
)
_STEPS = (
    "_embedding_bag _fake_quantize_learnable_per_tensor_affine "
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams argmax argmin argsort bitwise_and "
    "bitwise_not bitwise_or bitwise_xor bucketize ceil count_nonzero dequantize embedding eq "
    "fake_quantize_per_channel_affine_cachemask fake_quantize_per_tensor_affine_cachemask fix floor "
    "floor_divide fmod frac ge gt hardshrink heaviside isfinite isinf isnan le logical_and "
    "logical_not logical_or logical_xor lt mode ne one_hot quantize_per_channel quantize_per_tensor "
    "remainder round searchsorted sgn sign signbit trunc"
)
_RANDOM = (
    "bernoulli cauchy exponential geometric log_normal multinomial native_dropout normal poisson rand "
    "rand_like randint randint_like randn randn_like random randperm rrelu_with_noise uniform"
)

_CURVED_LAYERS = (
    nn.LSTM,
    nn.GRU,
    nn.LSTMCell,
    nn.GRUCell,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
    nn.LocalResponseNorm,
    nn.MultiheadAttention,
    nn.Bilinear,
    nn.CosineSimilarity,
    nn.PairwiseDistance,
    nn.LPPool1d,
    nn.LPPool2d,
    nn.LPPool3d,
)
"""Layers that are not piecewise affine as a whole, whatever the first operation inside that says so."""


def called(name: str) -> str:
    """What a person calls an ATen operation.

    >>> called("native_layer_norm"), called("_softmax"), called("cumsum")
    ('layer_norm', 'softmax', 'cumsum')
    """
    return _NAMES.get(name, name.strip("_"))


def unknown(name: str) -> Unreadable:
    """What is true of an operation that is not read.

    >>> type(unknown("gelu")).__name__, type(unknown("round")).__name__, type(unknown("cdist")).__name__
    ('NotPiecewiseAffine', 'Jumps', 'NotSupportedYet')
    """
    if name in _RANDOM.split():
        return IsRandom(called(name) if name == "bernoulli" else f"random numbers ({called(name)})")
    if name in _CURVED.split():
        return NotPiecewiseAffine(called(name))
    return Jumps(called(name)) if name in _STEPS.split() else NotSupportedYet(called(name))


def obstacle(reason: Unreadable, module: nn.Module | None, path: str) -> Foreign:
    """What stands in the way, by the name that a person knows, if it happens inside a module.

    A layer of torch is known by its own name, whatever it is made of; of other people's classes both the
    operation and the class are named.
    """
    kind = "" if module is None else type(module).__name__
    if isinstance(module, nn.RNN | nn.RNNCell) and module.nonlinearity != "relu":
        return Foreign(f"{kind} with {module.nonlinearity}", path)
    if isinstance(module, _CURVED_LAYERS):
        return Foreign(kind, path)
    if module is None or not _is_of_torch(module):
        return Foreign(str(reason), path, type(reason), kind)
    if reason.operation.replace("_", "") == kind.lower():  # softmax of one score -> Softmax of one score
        return Foreign(f"{kind} {reason.about}".strip(), path, type(reason))
    is_clear = isinstance(reason, NotPiecewiseAffine | Jumps) and not reason.about
    return Foreign(kind if is_clear else f"{kind} ({reason})", path, type(reason))


def _is_of_torch(module: nn.Module) -> bool:
    home = type(module).__module__
    return home.startswith("torch.nn.modules.") and not home.endswith(("container", "module"))
