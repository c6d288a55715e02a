"""How walkers and riders hold themselves: balls in space that parts of the body wrap."""

from dataclasses import dataclass

import numpy as np

COAT, TROUSERS, SKIN, HAIR, SHOES, FRAME = range(6)
"""What a part is coloured like."""


@dataclass(frozen=True)
class Body:
    """A kind of figure; part i is the hull of its balls.

    :param balls: (B, 4) right, up, forward and radius in metres at rest.
    :param ends: for each part, the number of its last ball plus 1.
    :param colors: for each part, which colour it has.
    :param gains: factor of that colour.
    :param fine: parts that are left out where the figure is small.
    :param index: numbers of the balls by name.
    """

    balls: np.ndarray
    ends: tuple[int, ...]
    colors: np.ndarray
    gains: np.ndarray
    fine: np.ndarray
    index: dict[str, list[int]]


class _Builder:
    def __init__(self) -> None:
        self._balls: list[tuple[float, float, float, float]] = []
        self._parts: list[tuple[int, int, float, bool]] = []
        self._index: dict[str, list[int]] = {}

    def part(self, color: int, gain: float, *balls: tuple, fine: bool = False) -> None:
        """Add a part; a ball is (right, up, forward, radius) or (name, radius): it moves."""
        for ball in balls:
            if isinstance(ball[0], str):
                self._index.setdefault(ball[0], []).append(len(self._balls))
                ball = (0.0, 0.0, 0.0, ball[1])
            self._balls.append(ball)
        self._parts.append((len(self._balls), color, gain, fine))

    def head(self, up: float, forward: float) -> None:
        """Add neck, face and hair."""
        self.part(SKIN, .85, (0, up, forward, .05), fine=True)
        self.part(SKIN, 1.0, (0, up + .11, forward + .02, .088), (0, up + .17, forward + .02, .09))
        self.part(HAIR, 1.0, (-.02, up + .20, forward - .03, .085), (.02, up + .21, forward, .085),
                  (0, up + .12, forward - .055, .075))

    def build(self) -> Body:
        ends, colors, gains, fine = zip(*self._parts, strict=True)
        return Body(np.array(self._balls, float), ends, np.array(colors), np.array(gains),
                    np.array(fine), self._index)


def _walker() -> Body:
    body = _Builder()
    for side, gain in (('left', .8), ('right', .92)):
        body.part(TROUSERS, gain, (side + ' hip', .10), (side + ' knee', .068))
        body.part(TROUSERS, gain, (side + ' knee', .066), (side + ' foot', .05))
        body.part(SHOES, 1.0, (side + ' heel', .045), (side + ' toe', .04), fine=True)
    body.part(COAT, 1.0, (-.15, 1.40, 0, .07), (.15, 1.40, 0, .07), ('left hem', .09),
              ('right hem', .09))
    for side in ('left', 'right'):
        body.part(COAT, .82, (side + ' shoulder', .062), (side + ' elbow', .052))
        body.part(COAT, .76, (side + ' elbow', .05), (side + ' hand', .04))
        body.part(SKIN, 1.0, (side + ' hand', .045), fine=True)
    body.head(1.50, 0.0)
    return body.build()


def _rider() -> Body:
    body = _Builder()
    rear, front, pedals = (0, .34, -.52, .025), (0, .34, .54, .025), (0, .30, -.06, .025)
    seat, steer = (0, .88, -.24, .025), (0, .90, .36, .025)
    for ends in ((rear, pedals), (pedals, seat), (seat, steer), (pedals, steer), (rear, seat),
                 (front, steer)):
        body.part(FRAME, 1.0, *ends)
    body.part(SHOES, 1.0, (0, .92, -.36, .07), (0, .93, -.12, .04))
    body.part(SHOES, 1.2, (-.26, 1.02, .34, .028), (.26, 1.02, .34, .028))
    for side, gain in (('left', .8), ('right', .92)):
        body.part(TROUSERS, gain, (side + ' hip', .105), (side + ' knee', .072))
        body.part(TROUSERS, gain * .9, (side + ' knee', .068), (side + ' foot', .052))
        body.part(SHOES, 1.0, (side + ' heel', .045), (side + ' toe', .04), fine=True)
    body.part(COAT, 1.0, (-.15, 1.42, .06, .08), (.15, 1.42, .06, .08), (-.11, .98, -.22, .10),
              (.11, .98, -.22, .10))
    for x in (-1, 1):
        elbow, hand = (x * .29, 1.18, .14, .052), (x * .24, 1.04, .33, .045)
        body.part(COAT, .84, (x * .21, 1.40, .07, .065), elbow)
        body.part(COAT, .76, elbow, hand)
        body.part(SKIN, 1.0, hand, fine=True)
    body.head(1.52, 0.10)
    return body.build()


WALKER, RIDER = _walker(), _rider()


def _swung(joint: np.ndarray, length: float, angle: np.ndarray, out: float = 0.0) -> np.ndarray:
    """The other end of a limb (P, 3) that hangs from a joint at an angle to the plumb line."""
    return joint + length * np.stack([np.full(len(angle), out), -np.cos(angle), np.sin(angle)], 1)


def walking(phase: np.ndarray, hem: np.ndarray) -> np.ndarray:
    """Walkers at moments of their step.

    :param phase: (P,) radians.
    :param hem: (P,) height of the coat's hem in metres.
    :return: (P, B, 4) balls of ``WALKER``.
    """
    joints = {}
    for side, name in ((-1, 'left '), (1, 'right ')):
        step = phase + (0 if side > 0 else np.pi)
        swing, bend = 0.42 * np.sin(step), 0.35 * np.maximum(0.0, np.cos(step))
        hip = np.tile((side * .09, .90, 0.0), (len(phase), 1))
        knee = _swung(hip, .43, swing)
        foot = _swung(knee, .42, swing - bend)
        shoulder = np.tile((side * .21, 1.39, 0.0), (len(phase), 1))
        elbow = _swung(shoulder, .29, -.86 * swing, side * .12)
        joints.update({
            name + 'hip': hip, name + 'knee': knee, name + 'foot': foot,
            name + 'heel': foot * (1, 0, 1) + (0, .045, -.03),
            name + 'toe': foot * (1, 0, 1) + (0, .04, .14),
            name + 'shoulder': shoulder, name + 'elbow': elbow,
            name + 'hand': _swung(elbow, .27, .3 - .86 * swing),
            name + 'hem': np.stack([np.full(len(hem), side * .12), hem, 0 * hem], 1)})
    return _posed(WALKER, joints, len(phase))


def riding(angle: np.ndarray) -> np.ndarray:
    """Riders at moments of their pedalling.

    :param angle: (P,) of the right pedal in radians.
    :return: (P, B, 4) balls of ``RIDER``.
    """
    joints = {}
    for side, name in ((-1, 'left '), (1, 'right ')):
        turn = angle + (0 if side > 0 else np.pi)
        foot = np.stack([np.full(len(angle), side * .13), .30 + .17 * np.sin(turn),
                         -.06 + .17 * np.cos(turn)], 1)
        hip = np.tile((side * .10, .97, -.22), (len(angle), 1))
        reach = np.linalg.norm(hip - foot, axis=1)
        out = np.sqrt(np.maximum(.43 ** 2 - (reach / 2) ** 2, 0.0))  # the knee bends forward
        knee = (foot + hip) / 2 + out[:, None] * (side * .15, .35, .93)
        joints.update({name + 'hip': hip, name + 'knee': knee, name + 'foot': foot,
                       name + 'heel': foot + (0, -.03, -.05), name + 'toe': foot + (0, -.03, .12)})
    return _posed(RIDER, joints, len(angle))


def _posed(body: Body, joints: dict[str, np.ndarray], count: int) -> np.ndarray:
    balls = np.tile(body.balls, (count, 1, 1))
    for name, numbers in body.index.items():
        balls[:, numbers, :3] = joints[name][:, None]
    return balls
