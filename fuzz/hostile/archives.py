"""Hostile files of torch.export: pickles, operators, names and expressions that would run the payload."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fuzz.hostile.case import Maker, Opening, tune

Entries = dict[str, bytes]
Change = Callable[[Entries, str], None]


class _Payload(NamedTuple):
    """An object that runs a shell command when it is unpickled."""

    command: str

    def __reduce__(self) -> Any:
        import os

        return os.system, (self.command,)


class _Module(torch.nn.Module):
    """A small module with a parameter, a buffer and a result that is a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("constant", torch.arange(3.0))

    def forward(self, x: Any) -> Any:
        return {"y": torch.relu(self.linear(x)) + self.constant}


def good() -> Entries:
    """Return the entries of a valid archive, without their common folder."""
    return dict(_good())


@cache
def _good() -> Mapping[str, bytes]:
    module = _Module().eval()
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(module, (torch.ones(2, 4),)), buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def write(entries: Mapping[str, bytes], path: Path, compression: int = zipfile.ZIP_STORED) -> None:
    """Write an archive."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(f"archive/{name}", content)


def pickled(payload: str) -> bytes:
    """Return a plain pickle that runs a payload."""
    return pickle.dumps(_Payload(payload))


def torch_pickled(payload: str) -> bytes:
    """Return such a pickle in the format of `torch.save`."""
    buffer = io.BytesIO()
    torch.save({"state": _Payload(payload)}, buffer)
    return buffer.getvalue()


def _changed(change: Change, *, refused: bool = True) -> Maker:
    def make(folder: Path, payload: str) -> Opening:
        entries = good()
        change(entries, payload)
        write(entries, folder / "hostile.pt2")
        return tune(folder / "hostile.pt2", refused=refused)

    return make


def _replaced(name: str, content: Callable[[str], bytes]) -> Maker:
    """Return a maker of an archive with a pickle in place of, or in addition to, an entry."""
    return _changed(lambda entries, payload: entries.update({name: content(payload)}))


MODEL = "models/model.json"


def _edited(edit: Callable[[Any, str], object], *, refused: bool = True) -> Maker:
    """Return a maker of an archive with a changed description of the program."""

    def change(entries: Entries, payload: str) -> None:
        model = json.loads(entries[MODEL])
        edit(model, payload)
        entries[MODEL] = json.dumps(model).encode()

    return _changed(change, refused=refused)


def _graph(model: Any) -> Any:
    return model["graph_module"]["graph"]


def _renamed(old: str, new: Callable[[str], str]) -> Maker:
    """Return a maker of an archive in which a value has another name in all places."""

    def change(entries: Entries, payload: str) -> None:
        text = entries[MODEL].decode()
        entries[MODEL] = text.replace(f'"{old}"', json.dumps(new(payload))).encode()

    return _changed(change)


def _target(target: str, *arguments: Callable[[str], Any]) -> Maker:
    """Return a maker of an archive whose first node calls another target with the given arguments."""

    def edit(model: Any, payload: str) -> None:
        node = _graph(model)["nodes"][0]
        node["target"] = target
        node["inputs"] = [{"name": "", "arg": argument(payload), "kind": 1} for argument in arguments]

    return _edited(edit)


def _text(payload: str) -> Any:
    return {"as_string": payload}


def _sized(expression: Callable[[str], str]) -> Maker:
    """Return a maker of an archive in which a size is an expression."""

    def edit(model: Any, payload: str) -> None:
        size = {"as_expr": {"expr_str": expression(payload), "hint": {"as_int": 2}}}
        _graph(model)["tensor_values"]["x"]["sizes"][0] = size

    return _edited(edit)


def _payloads(kind: str, name: str, content: Callable[[str], bytes]) -> Maker:
    """Return a maker of an archive whose table of weights or constants names a pickle."""

    def change(entries: Entries, payload: str) -> None:
        table = f"data/{kind}/model_{kind}_config.json"
        config = json.loads(entries[table])
        config["config"]["linear.weight"] = {
            "path_name": name, "is_param": False, "use_pickle": True, "tensor_meta": None,
        }  # fmt: skip
        entries[table] = json.dumps(config).encode()
        entries[f"data/{kind}/{name}"] = content(payload)

    return _changed(change)


def _weight(**meta: Any) -> Maker:
    """Return a maker of an archive with a changed description of a weight."""

    def change(entries: Entries, _: str) -> None:
        table = "data/weights/model_weights_config.json"
        config = json.loads(entries[table])
        config["config"]["linear.weight"]["tensor_meta"].update(meta)
        entries[table] = json.dumps(config).encode()

    return _changed(change)


def _call_name(payload: str) -> str:
    return f"x=__import__('os').system({payload!r})"


def _tree(kind: str, context: Callable[[str], Any]) -> Maker:
    """Return a maker of an archive whose inputs are a container of another type."""

    def edit(model: Any, payload: str) -> None:
        signature = model["graph_module"]["module_call_graph"][0]["signature"]
        tree = json.loads(signature["in_spec"])
        leaf = tree[1]["children_spec"][0]["children_spec"][0]
        inner = {"type": kind, "context": context(payload), "children_spec": [leaf]}
        tree[1]["children_spec"][0]["children_spec"][0] = inner
        signature["in_spec"] = json.dumps(tree)

    return _edited(edit)


def _guard(model: Any, payload: str) -> None:
    model["guards_code"] = [f"__import__('os').system({payload!r}) == 1"]


def _arguments(model: Any, payload: str) -> None:
    signature = model["graph_module"]["module_call_graph"][0]["signature"]
    signature["forward_arg_names"] = [_call_name(payload)]


def _deep(folder: Path, _: str) -> Opening:
    entries = good()
    entries[MODEL] = b'{"graph_module":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    write(entries, folder / "hostile.pt2")
    return tune(folder / "hostile.pt2", refused=True)


def _bomb(folder: Path, _: str) -> Opening:
    entries = good()
    with zipfile.ZipFile(folder / "hostile.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            if name == "data/weights/weight_0":
                with archive.open(f"archive/{name}", "w", force_zip64=True) as entry:
                    for _ in range(5 << 6):
                        entry.write(bytes(1 << 24))
            else:
                archive.writestr(f"archive/{name}", content)
    return tune(folder / "hostile.pt2", refused=True)


def _twice(folder: Path, payload: str) -> Opening:
    entries = good()
    import warnings

    with zipfile.ZipFile(folder / "hostile.pt2", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("archive/data/sample_inputs/model.pt", torch_pickled(payload))
        for name, content in entries.items():
            archive.writestr(f"archive/{name}", content)
        archive.writestr("archive/data/sample_inputs/model.pt", torch_pickled(payload))
    return tune(folder / "hostile.pt2", refused=True)


def _old(folder: Path, payload: str) -> Opening:
    """Make an archive in the format of torch up to 2.6, with a pickle in it."""
    entries = good()
    with zipfile.ZipFile(folder / "hostile.pt2", "w") as archive:
        archive.writestr("version", "8.8")
        archive.writestr("serialized_exported_program.json", entries[MODEL])
        archive.writestr("serialized_state_dict.pt", torch_pickled(payload))
        archive.writestr("serialized_constants.pt", b"")
        archive.writestr("serialized_example_inputs.pt", entries["data/sample_inputs/model.pt"])
    return tune(folder / "hostile.pt2", refused=True)


def _plain(folder: Path, payload: str) -> Opening:
    (folder / "hostile.pt2").write_bytes(pickled(payload))
    return tune(folder / "hostile.pt2", refused=True)


def _whole(folder: Path, payload: str) -> Opening:
    (folder / "hostile.pt2").write_bytes(torch_pickled(payload))
    return tune(folder / "hostile.pt2", refused=True)


def _beside(folder: Path, payload: str) -> Opening:
    """Put an archive next to a file of MLIR, where the baseline `torch` looks for it."""
    (folder / "hostile.mlir").write_text(
        "func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {\n  %c = arith.constant 0.0 : f32\n"
        "  %e = tensor.empty() : tensor<8x8xf32>\n"
        "  %z = linalg.fill ins(%c : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>\n"
        "  %r = linalg.matmul ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>)\n"
        "    outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>\n  return %r : tensor<8x8xf32>\n}\n"
    )
    write({**good(), "data/sample_inputs/model.pt": torch_pickled(payload)}, folder / "hostile.pt2")
    from hostile.case import irgym

    return irgym(
        *("compare", "linalg", "--methods", "base,torch", "--programs", f"linalg:{folder}/hostile.mlir"),
        *("--evaluations", "1"),
    )


def _looping(model: Any, _: str) -> None:
    """Make the module compute powers that double in size."""
    graph = _graph(model)
    graph["nodes"][0]["target"] = "torch.ops.aten.zeros.default"
    sizes = {"as_ints": [1 << 34]}
    graph["nodes"][0]["inputs"] = [{"name": "size", "arg": sizes, "kind": 1}]


CASES: Mapping[str, Maker] = {
    "pickle_in_sample_inputs": _replaced("data/sample_inputs/model.pt", torch_pickled),
    "pickle_in_legacy_weights": _replaced("data/weights/model.pt", torch_pickled),
    "pickle_in_legacy_constants": _replaced("data/constants/model.pt", torch_pickled),
    "pickle_among_weights": _payloads("weights", "weight_9", torch_pickled),
    "pickle_among_constants": _payloads("constants", "tensor_9", torch_pickled),
    "pickle_opaque_constant": _payloads("constants", "opaque_obj_0", pickled),
    "pickle_custom_object": _payloads("constants", "custom_obj_0", torch_pickled),
    "pickle_in_extra_files": _replaced("extra/note", torch_pickled),
    "pickle_in_archive_twice": _twice,
    "pickle_in_old_archive": _old,
    "pickle_as_whole_file": _plain,
    "pickle_of_torch_save": _whole,
    "pickle_beside_mlir": _beside,
    "library_of_aotinductor": _replaced("data/aotinductor/model/lib.so", lambda _: b"\x7fELF"),
    "target_os_system": _target("torch.serialization.os.system", _text),
    "target_load_library": _target("torch.ops.load_library", _text),
    "target_from_file": _target("torch.ops.aten.from_file.default", _text),
    "target_builtins": _target("_operator.call", lambda _: {"as_operator": "torch.os.system"}, _text),
    "target_methodcaller": _target("_operator.methodcaller", _text),
    "name_of_input": _renamed("x", _call_name),
    "name_of_result": _renamed("linear", lambda payload: f"a; {_call_name(payload)}; b"),
    "name_of_argument": _edited(_arguments),
    "size_runs_code": _sized(lambda payload: f"__import__('os').system({payload!r})"),
    "size_builds_code": _sized(lambda payload: f"exec({'+'.join(f'chr({ord(c)})' for c in payload)})"),
    "size_tower": _sized(lambda _: "9**9**9**9"),
    "guard_runs_code": _edited(_guard, refused=False),
    "tree_of_enum": _tree(
        "builtins.dict",
        lambda _: json.dumps([{"__enum__": True, "fqn": "this:x", "name": "y"}]),
    ),
    "tree_of_defaultdict": _tree(
        "collections.defaultdict",
        lambda _: {"default_factory_module": "os", "default_factory_name": "system", "dict_context": ["a"]},
    ),
    "tree_key_with_code": _tree(
        "builtins.dict",
        lambda payload: json.dumps([f'"+str(__import__("os").system({payload!r}))+"']),
    ),
    "weight_expanded_2_40": _weight(sizes=[{"as_int": 1 << 40}, {"as_int": 4}], strides=[{"as_int": 0}] * 2),
    "weight_beyond_its_bytes": _weight(sizes=[{"as_int": 1 << 40}, {"as_int": 4}]),
    "weight_offset_negative": _weight(storage_offset={"as_int": -8}),
    "zeros_2_34": _edited(_looping),
    "json_nested_100000": _deep,
    "zip_bomb": _bomb,
}
"""Archives, by name."""
