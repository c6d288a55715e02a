"""The confusion matrix as a picture."""

from collections.abc import Sequence

import cv2
import numpy as np

CELL_PX = 56
FONT, FONT_SCALE = cv2.FONT_HERSHEY_SIMPLEX, 0.45
BLACK, WHITE, BLUE = (0, 0, 0), (255, 255, 255), (8, 64, 129)


def draw_confusion(counts: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Draw what the pixels of each class were taken for.

    :param counts: (classes, classes or more) pixels by true and predicted class; columns beyond
        the classes are not drawn, but count as missed.
    :param names: of the classes.
    :return: (H, W, 3) uint8 RGB; one row for each true class, in percent of its pixels.
    """
    classes = len(names)
    share = counts[:, :classes] / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    margin = 24 + max(_width(name) for name in names)
    top = margin + 24
    picture = np.full((top + classes * CELL_PX + 12, margin + classes * CELL_PX + 12, 3), 255,
                      np.uint8)
    _write(picture, 'rows: true class, columns: predicted; % of the row', 12, 20, BLACK)
    for row, name in enumerate(names):
        y = top + row * CELL_PX
        _write(picture, name, margin - 8 - _width(name), y + CELL_PX // 2 + 5, BLACK)
        for column in range(classes):
            _draw_cell(picture, share[row, column], margin + column * CELL_PX, y)
    _write_columns(picture, names, margin, top)
    return picture


def _draw_cell(picture: np.ndarray, share: float, x: int, y: int) -> None:
    color = [round(w + (b - w) * share) for w, b in zip(WHITE, BLUE, strict=True)]
    cell = picture[y:y + CELL_PX, x:x + CELL_PX]
    cell[:] = 210  # grid
    cell[1:, 1:] = color
    if share >= 0.0005:
        text = f'{100 * share:.1f}'
        _write(picture, text, x + (CELL_PX - _width(text)) // 2, y + CELL_PX // 2 + 5,
               WHITE if share > 0.5 else BLACK)


def _write_columns(picture: np.ndarray, names: Sequence[str], margin: int, top: int) -> None:
    """Write the names over their columns, from bottom to top."""
    for column, name in enumerate(names):
        strip = np.full((CELL_PX, margin - 16, 3), 255, np.uint8)
        _write(strip, name, 0, CELL_PX // 2 + 5, BLACK)
        turned = cv2.rotate(strip, cv2.ROTATE_90_COUNTERCLOCKWISE)
        x = margin + column * CELL_PX
        picture[top - 8 - turned.shape[0]:top - 8, x:x + CELL_PX] = turned


def _write(picture: np.ndarray, text: str, x: int, y: int, color: tuple[int, int, int]) -> None:
    cv2.putText(picture, text, (x, y), FONT, FONT_SCALE, color, 1, cv2.LINE_AA)


def _width(text: str) -> int:
    """Pixels that a text is wide."""
    return cv2.getTextSize(text, FONT, FONT_SCALE, 1)[0][0]
