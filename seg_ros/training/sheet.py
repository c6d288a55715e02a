"""Parts of a sheet of pictures: paper, lines of text, a legend, pictures of one size."""

import cv2
import numpy as np

from seg_ros.labels import UNKNOWN, LabelSet

GAP_PX = 16
LINE_PX = 24           # height of a line of text
SWATCH_PX = 28         # width of a colour in the legend
STRIPE_PX = 8          # from one stripe over void to the next
FONT, FONT_SCALE = cv2.FONT_HERSHEY_SIMPLEX, 0.5
PAPER, INK = 255, (40, 40, 40)


def paper(height: int, width: int) -> np.ndarray:
    """(height, width, 3) uint8 RGB, white."""
    return np.full((height, width, 3), PAPER, np.uint8)


def write(line: np.ndarray, text: str, x: int) -> None:
    """Write into a line of ``LINE_PX`` pixels, in place."""
    cv2.putText(line, text, (x, LINE_PX - 7), FONT, FONT_SCALE, INK, 1, cv2.LINE_AA)


def fit(picture: np.ndarray, longer_side: int, interpolation: int) -> np.ndarray:
    """Resize so that the longer side has so many pixels.

    :param interpolation: of OpenCV, for a picture that shrinks; of one that grows the pixels are
        to be seen.
    """
    height, width = picture.shape[:2]
    factor = longer_side / max(height, width)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    return cv2.resize(picture, size,
                      interpolation=cv2.INTER_NEAREST if factor > 1 else interpolation)


def stripe_void(rgb: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Darken what is void and draw stripes over it.

    :param rgb: (H, W, 3) uint8.
    :param target: (H, W) uint8, 255 is void.
    :return: (H, W, 3) uint8, a new array.
    """
    stripe = np.indices(target.shape).sum(axis=0) % STRIPE_PX < 2
    striped = np.where(stripe[..., None], np.uint8(230), rgb // 3)
    return np.where((target == UNKNOWN)[..., None], striped, rgb)


def draw_legend(labels: LabelSet, width: int) -> np.ndarray:
    """Draw the colour and name of each class, then void, line by line.

    :return: (H, width, 3) uint8 RGB.
    """
    swatch = LINE_PX - 8, SWATCH_PX, 3
    void = stripe_void(np.zeros(swatch, np.uint8), np.full(swatch[:2], UNKNOWN, np.uint8))
    entries = [(name, np.full(swatch, color, np.uint8))
               for name, color in zip(labels.names, labels.colors, strict=True)]
    lines = [paper(LINE_PX, width)]
    x = GAP_PX
    for name, picture in [*entries, ('void', void)]:
        wide = SWATCH_PX + 8 + cv2.getTextSize(name, FONT, FONT_SCALE, 1)[0][0]
        if x > GAP_PX and x + wide > width - GAP_PX:
            lines.append(paper(LINE_PX, width))
            x = GAP_PX
        lines[-1][4:-4, x:x + SWATCH_PX] = picture
        write(lines[-1], name, x + SWATCH_PX + 8)
        x += wide + 2 * GAP_PX
    edge = paper(GAP_PX, width)
    return np.vstack([edge, *lines, edge])
