"""A model as a folder: model.json, vocabularies, safetensors, and a manifest of digests.

Nothing is unpickled, and names come from closed tables: a folder is data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ensue import __version__
from ensue.data.frames.frame import TYPES
from ensue.data.settings import DataSettings
from ensue.errors import EnsueError, RunError, no_memory, out_of_memory
from ensue.escape import in_shell
from ensue.files.atomic_folder import (
    MANIFEST,
    Damaged,
    canonical,
    read_files,
    recover,
    with_manifest,
    write_folder,
)
from ensue.files.format import FORMAT, check_folder, check_format
from ensue.files.seal import FILES, Seal, content_digest
from ensue.tasks.codec import unpacked
from ensue.tasks.declarations import OMITTED, OneOf, Range, Unfit
from ensue.training.gradients import first_not_finite

MEMBER = "member-"  # prefix of the files of a model in an ensemble
MOST_COUNTED = 10_000  # maximum weight of a model in an ensemble
MOST_TOLD = 300  # characters of a fault
# Errors that reading invalid values may raise.
FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)


class _Heading(NamedTuple):
    """The facts of every model. ensemble: the weights of the models of an ensemble."""

    label_type: Annotated[str, OneOf(("", *TYPES))] | None
    ensemble: Annotated[tuple[Annotated[int, Range(low=1, high=MOST_COUNTED)], ...], OMITTED]


@dataclass(frozen=True)
class Saved:
    """The content of a model folder. facts: settings and other plain values; vocabularies and
    arrays by name; networks: the weights of each member; cells: the Python files of custom cells,
    by the settings' key; seal: the files of the run that the model follows from; place: the folder
    it was read from; digest: one digest of all its files; ensemble: the models of an ensemble, each
    with its weight; prefix: the beginning of its file names, for a model of an ensemble."""

    kind: str
    facts: Mapping[str, Any]
    vocabularies: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    networks: Sequence[Mapping[str, Tensor]]
    cells: Mapping[str, bytes] = field(default_factory=dict)
    seal: Seal = field(default_factory=dict)
    place: str = ""
    digest: str = ""
    ensemble: Sequence[tuple[int, Saved]] = ()
    prefix: str = ""

    @property
    def roles(self) -> Mapping[str, Any]:
        """Columns by the keys of [data]."""
        by_key: Mapping[str, Any] = self.facts.get("roles", {})
        DataSettings.of({"train": ["row"], **by_key}, "roles")
        return by_key

    @property
    def label_type(self) -> str:
        """The type of the labels in a data frame; "" for texts."""
        return unpacked(_Heading, self).label_type or ""


def write_model(folder: Path, saved: Saved) -> None:
    """Writes a model completely or not at all, in place of a model or an empty folder; raises
    RunError for other folders."""
    files = _files(folder, saved)
    for number, (_, member) in enumerate(saved.ensemble, 1):
        files |= {f"{MEMBER}{number}-{name}": data for name, data in _files(folder, member).items()}
    write_folder(folder, with_manifest(files, {"format": FORMAT, "ensue": __version__}))


def _files(folder: Path, saved: Saved) -> dict[str, bytes]:
    """The files of one model, without the files of an ensemble."""
    facts = {"format": FORMAT, "kind": saved.kind, "ensue": __version__, **saved.facts}
    files = {
        "model.json": canonical(facts),
        "vocabularies.json": canonical(saved.vocabularies),
        "arrays.safetensors": safetensors.numpy.save(
            {n: np.ascontiguousarray(v) for n, v in saved.arrays.items()}
        ),
    }
    files |= {f"{key}.py": source for key, source in saved.cells.items()}
    files |= saved.seal
    for number, weights in enumerate(saved.networks, 1):
        if wrong := first_not_finite(weights):
            raise RunError(
                f"{folder}: not saved: network {number}: {wrong} holds NaN or infinity. Train it "
                "again, at a smaller rate"
            )
        files[f"network-{number}.safetensors"] = safetensors.torch.save(dict(weights))
    return files


def read_model(folder: Path) -> Saved:
    """The model in a folder; raises RunError if it is missing or incomplete."""
    try:
        recover(folder)
    except OSError as error:
        raise RunError(f"{folder}: cannot be read ({error.strerror})") from None
    if not folder.is_dir():
        raise RunError(
            f"{folder}: there is no model here; train one: "
            f"`ensue train FILE --run {in_shell(folder)}`"
        )
    check_folder(folder)  # before its layout, which may differ in another format
    with loading(folder):
        files = read_files(folder)
        check_format(json.loads(files[MANIFEST])["format"], folder)
        contents = _of_files(folder, files)
        every = [
            (count, replace(_of_files(folder, _of(files, k)), prefix=f"{MEMBER}{k}-"))
            for k, count in enumerate(unpacked(_Heading, contents).ensemble, 1)
        ]
        return replace(contents, ensemble=every, digest=content_digest(files[MANIFEST]))


def _of(files: Mapping[str, bytes], number: int) -> dict[str, bytes]:
    """The files of one model of an ensemble."""
    begin = f"{MEMBER}{number}-"
    named_files = files.items()
    return {name.removeprefix(begin): data for name, data in named_files if name.startswith(begin)}


def _of_files(folder: Path, files: Mapping[str, bytes]) -> Saved:
    """One model."""
    facts = json.loads(files["model.json"])
    check_format(facts["format"], folder)
    contents = {name: data for name, data in files.items() if not name.startswith(MEMBER)}
    count = sum(name.startswith("network-") for name in contents)
    return Saved(
        str(facts["kind"]),
        facts,
        json.loads(contents["vocabularies.json"]),
        safetensors.numpy.load(contents["arrays.safetensors"]),
        [
            _weights(safetensors.torch.load(contents[f"network-{number}.safetensors"]), number)
            for number in range(1, count + 1)
        ],
        {name.removesuffix(".py"): data for name, data in contents.items() if name.endswith(".py")},
        {name: contents[name] for name in FILES if name in contents},
        str(folder),
    )


@contextmanager
def loading(place: Path | str) -> Iterator[None]:
    """Converts every fault in the content of a folder into one Ensue error: digests may be valid
    although Ensue never writes such content."""
    try:
        yield
    except EnsueError:
        raise
    except (Damaged, SafetensorError) as why:
        raise RunError(f"{place}: this is not a whole model: {why}. Train it again") from None
    except FAULTS as why:
        if no_memory(why):
            raise out_of_memory(why) from why
        kind = "" if isinstance(why, Unfit) else f"{type(why).__name__}: "
        message = f"{kind}{why}" if str(why) else type(why).__name__
        raise RunError(
            f"{place}: this is not a model written by Ensue ({message[:MOST_TOLD]}). Fetch it "
            "again, or train it again"
        ) from None


def _weights(tensors: dict[str, Tensor], number: int) -> dict[str, Tensor]:
    """The weights of a network; raises an error if one is not finite."""
    if wrong := first_not_finite(tensors):
        raise Damaged(f"network {number}: {wrong} holds NaN or infinity")
    return tensors


def network_files(networks: Sequence[nn.Module]) -> list[dict[str, Tensor]]:
    """The weights of each network in the form of the file format: contiguous, not shared."""
    return [
        {name: t.detach().cpu().clone().contiguous() for name, t in net.state_dict().items()}
        for net in networks
    ]


class _Unfilled(TorchFunctionMode):
    """Leaves tensors without memory uninitialised: to fill them, torch would import its compiler,
    which takes a second."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func is Tensor.normal_ or getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else named["tensor"]
        return func(*args, **named)


def _refuse_other_shapes(saved: Saved, build: Callable[[], nn.Module]) -> None:
    """Raises RunError if the network of these settings has other weights than the saved ones. It is
    built without memory, because the settings may require too much."""
    with torch.device("meta"), _Unfilled():
        expected = {name: tuple(tensor.shape) for name, tensor in build().state_dict().items()}
    for number, weights in enumerate(saved.networks, 1):
        shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
        for name in dict.fromkeys([*expected, *shapes]):
            expected_shape, got = expected.get(name), shapes.get(name)
            if expected_shape != got:
                raise RunError(
                    f"{saved.place}: the weights of network {number} do not fit the settings of "
                    f"the model: {name}: expected {_shape(expected_shape)}, got {_shape(got)}. "
                    "Fetch it "
                    "again, or train it again"
                )


def _shape(sizes: tuple[int, ...] | None) -> str:
    return "nothing" if sizes is None else " × ".join(map(str, sizes)) or "one number"


def networks_of(saved: Saved, build: Callable[[], nn.Module], count: int | None) -> list[nn.Module]:
    """Networks with the saved weights, ready to answer. count: the required number; None for a
    solved family, which has one or none."""
    networks, saved_count = [], len(saved.networks)
    if saved_count > 1 if count is None else saved_count != count:
        raise Unfit(f"expected {count or 1:,} networks, got {saved_count:,}", "members")
    if saved.networks:
        _refuse_other_shapes(saved, build)
    for weights in saved.networks:
        network = build()
        network.load_state_dict(dict(weights))
        networks.append(network.eval())
    return networks
