"""Kokoro, and other models' codecs, at a useful speed on a Linux CPU. Start Python with MKL preloaded; never active on a Metal device.

MLX's CPU back end is slow on dilated and transposed convolutions (naive loops), on element-wise operations between
arrays of different layout (18 ms against 1 ms), on powers and on sines. The stock modules keep audio channels-first
as a swapped view, which hits all of them. The replacements compute the same expressions channels-last.
"""

import mlx.core as mx
import numpy as np


def conv1d(x, w, padding, dilation, **_):  # stride 1, one group: one accumulating matrix product per tap
    x = mx.pad(x, ((0, 0), (padding, padding), (0, 0)))
    frames = x.shape[1] - dilation * (w.shape[1] - 1)
    y = x[:, :frames] @ w[:, 0].T
    for tap in range(1, w.shape[1]):
        y = mx.addmm(y, x[:, tap * dilation : tap * dilation + frames], w[:, tap].T)
    return y


def dilated(stock):
    """MLX computes a dilated convolution in loops: forty times the time of the matrix products."""

    def call(x, w, stride=1, padding=0, dilation=1, groups=1, **options):
        if dilation == 1 or stride != 1 or groups != 1:
            return stock(x, w, stride, padding, dilation, groups, **options)
        return conv1d(x, w, padding, dilation)

    return call


def conv_transpose1d(stock):
    def call(x, w, stride=1, padding=0, dilation=1, output_padding=0, groups=1, **options):
        if stride == 1 or dilation != 1 or output_padding or groups != 1:
            return stock(x, w, stride, padding, dilation, output_padding, groups, **options)
        (batch, frames, channels), (out, taps, _) = x.shape, w.shape
        phases = -(-taps // stride)  # taps that reach one output sample
        z = (x @ w.transpose(1, 0, 2).reshape(taps * out, channels).T).reshape(batch, frames, taps, out)
        z = mx.pad(z, ((0, 0), (0, 0), (0, phases * stride - taps), (0, 0)))
        z = z.reshape(batch, frames, phases, stride * out)
        y = sum(mx.pad(z[:, :, j], ((0, 0), (j, phases - 1 - j), (0, 0))) for j in range(phases))
        y = y.reshape(batch, -1, out)[:, : (frames - 1) * stride + taps]
        return y[:, padding : y.shape[1] - padding] if padding else y

    return call


def adaptive_norm(self, x, s):  # AdaIN1d on (batch, frames, channels)
    gamma, beta = mx.split(self.fc(s)[:, None], 2, axis=2)
    centred = x - mx.mean(x, axis=1, keepdims=True)
    var = mx.mean(centred * centred, axis=1, keepdims=True)
    return centred * ((1 + gamma) / mx.sqrt(var + self.norm.eps)) + beta


def snake(x, alpha):
    alpha = alpha.reshape(1, 1, -1)
    sine = mx.array(np.sin(np.asarray(alpha * x)))  # numpy's sine is vectorised, MLX's is not
    return x + (1 / alpha) * (sine * sine)


def residual_block(self, x, s):  # AdaINResBlock1
    x = mx.contiguous(x.swapaxes(1, 2))
    layers = zip(self.convs1, self.convs2, self.adain1, self.adain2, self.alpha1, self.alpha2, strict=True)
    for conv1, conv2, norm1, norm2, alpha1, alpha2 in layers:
        y = conv1(snake(adaptive_norm(norm1, x, s), alpha1), conv1d)
        x = x + conv2(snake(adaptive_norm(norm2, y, s), alpha2), conv1d)
    return x.swapaxes(1, 2)


def normalised_weight(self):  # ConvWeighted: the one place where a folded weight can be put in
    from mlx_audio.tts.models.kokoro.istftnet import weight_norm

    return weight_norm(self.weight_v, self.weight_g, dim=0)


def weighted_conv(self, x, conv):
    w = self.normalised_weight()
    w = w if x.shape[-1] == w.shape[-1] or self.groups > 1 else w.T
    y = conv(x, w, stride=self.stride, padding=self.padding, dilation=self.dilation, groups=self.groups)
    return y if self.bias is None else y + self.bias.reshape(1, 1, -1)


def install():
    if mx.default_device().type != mx.cpu or hasattr(mx.conv_transpose1d, "__wrapped__"):
        return
    from mlx_audio.tts.models.kokoro import istftnet as net

    stock = mx.conv_transpose1d
    mx.conv_transpose1d = conv_transpose1d(stock)
    mx.conv_transpose1d.__wrapped__ = stock
    mx.conv1d = dilated(mx.conv1d)
    net.AdaINResBlock1.__call__ = residual_block
    net.ConvWeighted.normalised_weight, net.ConvWeighted.__call__ = normalised_weight, weighted_conv
    net.leaky_relu = lambda x, negative_slope=0.01: mx.maximum(x, x * negative_slope)
    net.ReflectionPad1d.__call__ = lambda self, x: mx.pad(x.swapaxes(1, 2), ((0, 0), tuple(self.padding), (0, 0))).swapaxes(1, 2)
