"""Every number the paper prints, table by table; None where it prints nothing."""

from __future__ import annotations

METHODS = ("cPCA", "ct-SNE", "Fair-NeRV", "IMAPCE")

# Table 1: NLS (synthetic, Adult) and linear accuracy (superimposed images).
TABLE_1 = {
    "synthetic": (0.16, 0.34, 0.49, 0.45),
    "adult ethnicity": (0.11, 0.13, 0.23, 0.21),
    "mnist Sandal/Sneaker": (0.75, 0.65, 0.78, 0.81),
    "cifar Trouser/Dress": (0.58, 0.79, 0.83, 0.95),
}

# Table 2, in seconds; the Fair-NeRV of the images was cut off at an hour.
SECONDS = {
    "synthetic": (2, 30, 300, 3),
    "adult ethnicity": (5, 70, 300, 5),
    "mnist Sandal/Sneaker": (21, 63, 3600, 26),
    "cifar Trouser/Dress": (22, 61, 3600, 25),
}

# Linear accuracy of the superimposed images, Table 1 and the supplement.
LINEAR = {
    "mnist Sandal/Sneaker": (0.75, 0.65, 0.78, 0.81),
    "mnist T-shirt/Dress": (0.83, 0.85, 0.86, 0.88),
    "mnist Sandal/Ankle boot": (0.87, 0.85, 0.81, 0.89),
    "cifar Trouser/Dress": (0.58, 0.79, 0.83, 0.95),
    "cifar T-shirt/Shirt": (0.54, 0.70, 0.71, 0.78),
    "cifar T-shirt/Coat": (0.64, 0.86, 0.87, 0.90),
}

# SVM accuracy, F1 and recall of the superimposed images, by method.
SVM = {
    "mnist Sandal/Sneaker": ((0.75, 0.75, 0.76), (0.77, 0.76, 0.91), (0.80, 0.80, 0.78), (0.81, 0.81, 0.80)),
    "mnist T-shirt/Dress": ((0.85, 0.85, 0.84), (0.90, 0.92, 0.90), (0.88, 0.88, 0.91), (0.88, 0.88, 0.91)),
    "mnist Sandal/Ankle boot": ((0.89, 0.89, 0.88), (0.92, 0.92, 0.92), (0.82, 0.82, 0.83), (0.90, 0.90, 0.89)),
    "cifar T-shirt/Shirt": ((0.54, 0.54, 0.56), (0.73, 0.73, 0.66), (0.72, 0.72, 0.68), (0.79, 0.79, 0.73)),
    "cifar Trouser/Dress": ((0.58, 0.57, 0.55), (0.90, 0.90, 0.96), (0.85, 0.85, 0.92), (0.96, 0.96, 0.98)),
    "cifar T-shirt/Coat": ((0.65, 0.65, 0.65), (0.88, 0.88, 0.84), (0.89, 0.88, 0.83), (0.93, 0.93, 0.94)),
}

# NLS of IMAPCE for other values of μ.
ABLATION_NLS = {
    "synthetic": {0.0: 0.44, 10.0: 0.44, 200.0: 0.45, 1e3: 0.01, 1e5: 0.00},
    "adult ethnicity": {0.0: 0.20, 10.0: 0.20, 200.0: 0.21, 1e3: 0.19, 1e5: 0.17},
    "adult gender": {0.0: 0.37, 10.0: 0.38, 200.0: 0.38, 1e3: 0.00, 1e5: 0.00},
    "adult ethnicity and gender": {0.0: 0.47, 10.0: 0.50, 200.0: 0.49, 1e3: 0.20, 1e5: 0.17},
}

# SVM accuracy, F1 and recall of IMAPCE for other values of μ.
ABLATION_SVM = {
    "mnist Sandal/Sneaker": {
        0.0: (0.70, 0.79, 0.70),
        10.0: (0.75, 0.75, 0.81),
        1e3: (0.76, 0.76, 0.81),
        1e5: (0.81, 0.81, 0.80),
        1e7: (0.74, 0.74, 0.77),
    },
    "mnist T-shirt/Dress": {
        0.0: (0.85, 0.85, 0.84),
        10.0: (0.85, 0.85, 0.84),
        1e3: (0.86, 0.86, 0.85),
        1e5: (0.88, 0.88, 0.91),
        1e7: (0.88, 0.88, 0.94),
    },
    "mnist Sandal/Ankle boot": {
        0.0: (0.89, 0.89, 0.89),
        10.0: (0.89, 0.89, 0.89),
        1e3: (0.89, 0.89, 0.89),
        1e5: (0.90, 0.90, 0.89),
        1e7: (0.84, 0.84, 0.87),
    },
    "cifar T-shirt/Shirt": {
        0.0: (0.79, 0.79, 0.70),
        10.0: (0.79, 0.79, 0.69),
        1e3: (0.79, 0.79, 0.70),
        1e5: (0.80, 0.80, 0.71),
        1e7: (0.79, 0.79, 0.73),
    },
    "cifar Trouser/Dress": {
        0.0: (0.74, 0.73, 0.79),
        10.0: (0.74, 0.73, 0.79),
        1e3: (0.74, 0.74, 0.79),
        1e5: (0.86, 0.86, 0.94),
        1e7: (0.96, 0.96, 0.98),
    },
    "cifar T-shirt/Coat": {
        0.0: (0.90, 0.90, 0.88),
        10.0: (0.90, 0.90, 0.88),
        1e3: (0.90, 0.90, 0.88),
        1e5: (0.90, 0.90, 0.89),
        1e7: (0.93, 0.93, 0.94),
    },
}

# Explorations: class known at the start → Jaccard and NMI of IMAPCE, then of cPCA.
IMAGE_SEGMENTATION = {
    "none": (0.63, 0.67, 0.44, 0.46),
    "BRICKFACE": (0.63, 0.67, 0.49, 0.60),
    "CEMENT": (0.64, 0.69, 0.47, 0.60),
    "FOLIAGE": (0.65, 0.72, 0.47, 0.61),
    "GRASS": (0.59, 0.64, 0.50, 0.48),
    "WINDOW": (0.68, 0.74, 0.50, 0.57),
    "SKY": (0.57, 0.61, 0.35, 0.43),
    "PATH": (0.59, 0.65, 0.43, 0.56),
}
MNIST_EXPLORATION = {
    "none": (0.41, 0.41, 0.30, 0.22),
    "0": (0.38, 0.39, 0.21, 0.14),
    "1": (0.33, 0.35, 0.16, 0.09),
    "2": (0.37, 0.38, 0.31, 0.22),
    "3": (0.34, 0.39, 0.25, 0.19),
    "4": (0.44, 0.42, 0.27, 0.19),
    "5": (0.43, 0.43, 0.26, 0.28),
    "6": (0.32, 0.35, 0.26, 0.20),
    "7": (0.40, 0.38, 0.24, 0.20),
    "8": (0.41, 0.41, 0.27, 0.19),
    "9": (0.42, 0.39, 0.27, 0.19),
}
