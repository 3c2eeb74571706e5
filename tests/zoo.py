"""Small versions of the architectures that people use, with batch-norm statistics as if trained."""

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.networks import cnn, mlp, resnet18, seeded


def conv_bn(n_in, n_out, kernel=3, stride=1, groups=1, act=nn.ReLU):
    layers = [
        nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(n_out),
    ]
    return nn.Sequential(*layers, act(inplace=True)) if act else nn.Sequential(*layers)


class VGG(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            conv_bn(3, 6), conv_bn(6, 6), nn.MaxPool2d(2), conv_bn(6, 8), nn.MaxPool2d(3, 2, padding=1)
        )
        self.classifier = nn.Sequential(nn.Linear(8 * 16, 20), nn.ReLU(), nn.Dropout(), nn.Linear(20, 5))

    def forward(self, x):
        x = self.features(x)
        return self.classifier(x.view(x.size(0), -1))


class InvertedResidual(nn.Module):
    def __init__(self, n_in, n_out, stride, expand):
        super().__init__()
        hidden = n_in * expand
        self.use_skip = stride == 1 and n_in == n_out
        self.conv = nn.Sequential(
            conv_bn(n_in, hidden, 1, act=nn.ReLU6),
            conv_bn(hidden, hidden, 3, stride, groups=hidden, act=nn.ReLU6),
            conv_bn(hidden, n_out, 1, act=None),
        )

    def forward(self, x):
        return x + self.conv(x) if self.use_skip else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            conv_bn(3, 4, stride=2, act=nn.ReLU6),
            InvertedResidual(4, 4, 1, 2),
            InvertedResidual(4, 6, 2, 2),
            InvertedResidual(6, 6, 1, 2),
            conv_bn(6, 12, 1, act=nn.ReLU6),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(12, 5))

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class RegNetBlock(nn.Module):
    def __init__(self, n_in, n_out, stride, group_width):
        super().__init__()
        self.proj = (
            conv_bn(n_in, n_out, 1, stride, act=None) if stride != 1 or n_in != n_out else nn.Identity()
        )
        self.f = nn.Sequential(
            conv_bn(n_in, n_out, 1),
            conv_bn(n_out, n_out, 3, stride, n_out // group_width),
            conv_bn(n_out, n_out, 1, act=None),
        )

    def forward(self, x):
        return F.relu(self.proj(x) + self.f(x), inplace=True)


class RegNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv_bn(3, 4, stride=2)
        self.trunk = nn.Sequential(RegNetBlock(4, 8, 1, 4), RegNetBlock(8, 8, 1, 4), RegNetBlock(8, 12, 2, 4))
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        return self.fc(self.trunk(self.stem(x)).mean(dim=(2, 3)))


def channel_shuffle(x, groups):
    n, c, h, w = x.size()
    return x.view(n, groups, c // groups, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


class ShuffleBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.branch = nn.Sequential(
            conv_bn(half, half, 1), conv_bn(half, half, 3, groups=half, act=None), conv_bn(half, half, 1)
        )

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return channel_shuffle(torch.cat((a, self.branch(b)), dim=1), 2)


class ShuffleNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.pool = conv_bn(3, 8, stride=2), nn.MaxPool2d(3, 2, padding=1)
        self.stages = nn.Sequential(ShuffleBlock(8), ShuffleBlock(8))
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = self.stages(self.pool(self.conv1(x)))
        return self.fc(x.mean([2, 3]))


class UNet(nn.Module):
    """Down, up, and concatenated; the scores are means over the map."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2 = conv_bn(3, 4), conv_bn(4, 6, stride=2)
        self.bottom = conv_bn(6, 6, stride=2)
        self.up1, self.up2 = nn.ConvTranspose2d(6, 6, 2, 2), nn.Upsample(scale_factor=2)
        self.join = conv_bn(12, 4)
        self.out = nn.Conv2d(8, 5, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(a)
        c = self.join(torch.cat([b, self.up1(self.bottom(b))], 1))
        return self.out(torch.cat([a, self.up2(c)], 1)).mean((2, 3))


MAKERS = {
    "mlp": lambda: mlp(12, 16, 16, 5),
    "cnn": lambda: cnn((4, 6, 6)),
    "vgg": VGG,
    "resnet18": lambda: resnet18(2),
    "mobilenet_v2": MobileNetV2,
    "regnet": RegNet,
    "shufflenet_v2": ShuffleNetV2,
    "unet": UNet,
}
SHAPES = {"mlp": (12,), "cnn": (3, 32, 32)}


def shape_of(name):
    return SHAPES.get(name, (3, 16, 16))


def make(name, *, seed=0):
    """A network of the zoo in eval mode, its batch-norm statistics drawn at random."""
    with seeded(seed):
        net = MAKERS[name]()
        for layer in net.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_(std=0.3)
                layer.running_var.uniform_(0.5, 2.0)
                nn.init.uniform_(layer.weight, 0.5, 1.5)
                nn.init.normal_(layer.bias, std=0.3)
    return net.eval()
