"""A panel of a picture: two axes with their units, and a line with marks for each server."""
from dataclasses import dataclass

from picture import LETTER
from scale import label

# Space around the axes for labels.
LEFT, RIGHT, TOP, BOTTOM = 88, 20, 34, 46


@dataclass(frozen=True)
class Axis:
    """A scale and its name."""

    name: str
    scale: object


class Panel:
    """Axes in a box of a picture."""

    def __init__(self, picture, box, title, across, up):
        x, y, width, height = box
        self._picture = picture
        self._across, self._up = across, up
        self._x, self._y = x + LEFT, y + TOP
        self._width, self._height = width - LEFT - RIGHT, height - TOP - BOTTOM
        picture.words(self._x, y + 20, title, "head")
        self._draw_axes()

    def _draw_axes(self):
        bottom, right = self._y + self._height, self._x + self._width
        for tick in self._up.scale.ticks:
            y = self._y_of(tick)
            self._picture.line([(self._x, y), (right, y)], "faint")
            self._picture.words(self._x - 8, y + 4, label(tick), anchor="end")
        for tick in self._across.scale.ticks:
            x = self._x_of(tick)
            self._picture.line([(x, bottom), (x, bottom + 4)], "faint")
            self._picture.words(x, bottom + 18, label(tick), anchor="middle")
        self._picture.words(self._x + self._width / 2, bottom + 37, self._across.name, anchor="middle")
        self._picture.words(self._x - LEFT + 16, self._y + self._height / 2, self._up.name, anchor="middle", turned=True)

    def draw(self, server, points):
        """Draws a server's line through points."""
        places = [(self._x_of(across), self._y_of(up)) for across, up in points]
        if len(places) > 1:
            self._picture.line(places, server)
        for (x, y), (across, up) in zip(places, points):
            self._picture.mark(x, y, server, f"{server}, {label(across)}: {up:,.4g}")

    def _x_of(self, figure):
        return self._x + self._width * self._across.scale.share(figure)

    def _y_of(self, figure):
        return self._y + self._height * (1 - self._up.scale.share(figure))


class Bars:
    """Lines with a label, a value and a bar each, below one scale."""

    LINE, BAR = 22, 13
    # Space for the values before their bars.
    FIGURE = 52

    def __init__(self, picture, box, words, name, scale):
        x, y, width, _ = box
        self._picture = picture
        self._scale = scale
        self._words = words
        self._x = x + LETTER * max(map(len, words)) + self.FIGURE
        self._y = y + TOP
        self._width = x + width - self._x - RIGHT
        bottom = self._y + self.LINE * len(words)
        for tick in scale.ticks:
            across = self._x_of(tick)
            picture.line([(across, self._y), (across, bottom)], "faint")
            picture.words(across, self._y - 8, label(tick), anchor="middle")
        picture.words(self._x, y + 4, name)

    @classmethod
    def height(cls, count):
        return TOP + cls.LINE * count

    def draw(self, at, server, figure, echo=None, wanted=None):
        """Draws a bar, a mark at the echo's value for comparison, and a stroke at the target."""
        top = self._y + self.LINE * at
        middle = top + self.LINE / 2
        self._picture.words(self._x - self.FIGURE, middle + 4, self._words[at], anchor="end")
        self._picture.words(self._x - 8, middle + 4, f"{figure:.1f}", "strong", anchor="end")
        self._picture.bar(self._x, middle - self.BAR / 2, self._x_of(figure) - self._x, self.BAR, server)
        if wanted:
            self._picture.line([(self._x_of(wanted), top + 1), (self._x_of(wanted), top + self.LINE - 1)], "wanted")
        if echo:
            # A value beyond the scale is drawn at its end, with its number.
            place = self._x_of(min(echo, self._scale.most))
            self._picture.mark(place, middle, "echo", f"an echo: {echo:.1f}")
            if echo > self._scale.most:
                self._picture.words(place - 10, middle + 4, f"{echo:.1f}", anchor="end")

    def _x_of(self, figure):
        return self._x + self._width * self._scale.share(figure)
