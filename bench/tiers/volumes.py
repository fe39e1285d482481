"""The bytes that a server writes to each volume, by the lengths of its files."""
import os
import threading

# Files exist longer than this: until the cleaner of the archive runs.
SAMPLE_S = 0.2


class Volumes:
    """Samples the lengths of all files below some directories for the duration of the block.

    A file counts with its largest length, also after its deletion. Names on a volume are never
    used again.
    """

    def __init__(self, directories):
        self._directories = directories
        self._lengths = {directory: {} for directory in directories}
        self._over = threading.Event()

    def __enter__(self):
        self._sampler = threading.Thread(target=self._run)
        self._sampler.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._sampler.join()
        self._sample()

    def written(self):
        """The bytes of each directory so far, in the order of the directories."""
        # The sampler may add files meanwhile.
        return [sum(list(self._lengths[directory].values())) for directory in self._directories]

    def _run(self):
        while not self._over.wait(SAMPLE_S):
            self._sample()

    def _sample(self):
        for directory, lengths in self._lengths.items():
            for path, _, names in os.walk(directory):
                for name in names:
                    self._add(lengths, os.path.join(path, name))

    @staticmethod
    def _add(lengths, path):
        try:
            length = os.path.getsize(path)
        except FileNotFoundError:
            return
        lengths[path] = max(length, lengths.get(path, 0))
