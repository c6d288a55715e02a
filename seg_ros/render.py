"""Pictures of label images: arrays in, arrays out."""

import cv2
import numpy as np

from seg_ros.labels import UNKNOWN, LabelSet

LEGEND_ROW_PX = 12, 40  # smallest that can be read, largest that helps


def colorize(labels: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """Colour of each pixel's class.

    :param labels: (H, W) uint8 class ids.
    :param palette: (256, 3) uint8 RGB, see ``LabelSet.palette``.
    :return: (H, W, 3) uint8 RGB.
    """
    return cv2.applyColorMap(labels, palette.reshape(256, 1, 3))  # ten times as fast as NumPy


def draw_overlay(rgb: np.ndarray, labels: np.ndarray, palette: np.ndarray,
                 alpha: float) -> np.ndarray:
    """Lay the classes' colours over the picture; where the class is unknown it stays as it is.

    :param rgb: (H, W, 3) uint8.
    :param labels: (H, W) uint8 class ids.
    :param palette: (256, 3) uint8 RGB, see ``LabelSet.palette``.
    :param alpha: share of the colour, 0..1; the rest is the picture.
    :return: (H, W, 3) uint8 RGB, a new array.
    """
    overlay = cv2.addWeighted(rgb, 1 - alpha, colorize(labels, palette), alpha, 0)
    return cv2.copyTo(rgb, (labels == UNKNOWN).view(np.uint8), overlay)


def draw_legend(picture: np.ndarray, labels: LabelSet) -> None:
    """Draw colour and name of each class into the upper left corner, on a darkened ground.

    Classes for which there is no room are left out, as on a picture lower than a few rows.

    :param picture: (H, W, 3) uint8 RGB, C-contiguous; drawn into.
    """
    height, width = picture.shape[:2]
    row = min(max(height // 24, LEGEND_ROW_PX[0]), LEGEND_ROW_PX[1])
    rows = (height - row) // row  # half a row stays free above and below
    font, thickness, left = cv2.FONT_HERSHEY_SIMPLEX, 1 + row // 24, row // 2
    scale = cv2.getFontScaleFromHeight(font, row // 2, thickness)
    for first in range(0, len(labels), max(rows, 1)):
        column = range(first, min(first + rows, len(labels)))
        text_width = max((cv2.getTextSize(labels.names[index], font, scale, thickness)[0][0]
                          for index in column), default=width)
        right = left + 2 * row + text_width
        if right > width:
            return
        top = row // 2
        ground = picture[top:top + len(column) * row, left:right]
        ground[:] = ground // 3
        for index in column:
            corner = (left + row // 4, top + row // 4)
            cv2.rectangle(picture, corner, (corner[0] + row, corner[1] + row // 2),
                          labels.colors[index], cv2.FILLED)
            cv2.putText(picture, labels.names[index], (corner[0] + row + row // 4,
                        corner[1] + row // 2), font, scale, (255, 255, 255), thickness,
                        cv2.LINE_AA)
            top += row
        left = right
