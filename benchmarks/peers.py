"""JAX and ONNX Runtime, in a Python of their own, measured by `ensue bench`.

Reads one JSON request a line and answers with one JSON line:

    {"do": "hello", "threads": 2}                 → {"jax": "0.7.1", "onnx": "1.22.0"}
    {"do": "prepare", "who": "jax", …}            → {}
    {"do": "run", "who": "jax", "times": 3}       → {"seconds": 0.12}
    {"do": "compute", "who": "jax", …}            → {"y": […], "gradients": […]}

Whatever goes wrong is {"error": "…"}. `ensue bench` writes the JAX loop of a cell; ONNX
Runtime has operators for LSTM, GRU and simple networks, in inference only.
"""

import importlib
import json
import os
import sys
import time

import numpy

GATES = {"LSTM": "ifgo", "GRU": "rzn", "SimpleRNN": "h"}
ONNX_GATES = {"LSTM": "iofg", "GRU": "zrn", "SimpleRNN": "h"}
ONNX_NAMES = {"LSTM": "LSTM", "GRU": "GRU", "SimpleRNN": "RNN"}

ready = {}  # who → a function that does the work once
threads = 1


def hello(request):
    """Which peers are here, and their versions; uses as many cores as requested."""
    global threads
    threads = request["threads"]
    if hasattr(os, "sched_setaffinity"):  # the only number of threads that XLA respects
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    version_of = {}
    for who, modules in {"jax": ["jax"], "onnx": ["onnxruntime", "onnx"]}.items():
        try:
            versions = [importlib.import_module(name).__version__ for name in modules]
        except ImportError:
            continue
        version_of[who] = versions[0]
    return version_of


def arrays(request):
    """x, the gradient of y, and the parameters: those given, or random ones of given shapes."""
    generator = numpy.random.default_rng(1)
    hidden = request["hidden"]

    def array(name, shape, scale):
        if name in request.get("values", {}):
            return numpy.array(request["values"][name], "float32").reshape(shape)
        return (scale * generator.uniform(-1, 1, shape)).astype("float32")

    x = array("x", (request["steps"], request["batch"], hidden), 1.0)
    d_y = array("d_y", (request["steps"], request["batch"], request["output"]), 1.0)
    shapes = request["parameters"]
    parameters = {n: array(n, shape, hidden**-0.5) for n, shape in shapes.items()}
    return x, d_y, parameters


# --- JAX ------------------------------------------------------------------------------


def jax_function(request):
    """(function, its arguments): y, or the gradients for x and the parameters."""
    import jax
    import jax.numpy as jnp

    place = {"jax": jax, "jnp": jnp}
    exec(request["source"], place)
    x, d_y, parameters = arrays(request)
    state = tuple(jnp.zeros((request["batch"], size), "float32") for size in request["state"])

    def forward(x, parameters):
        return place["loop"](x, state, *parameters)[0]

    def train(x, parameters, d_y):
        y, back = jax.vjp(forward, x, parameters)
        return y, back(d_y)

    arguments = jax.device_put((x, tuple(parameters.values()), d_y))
    if request["mode"] == "infer":
        return jax.jit(forward), arguments[:2]
    return jax.jit(train), arguments


def prepare_jax(request):
    import jax

    function, arguments = jax_function(request)
    return lambda: jax.block_until_ready(function(*arguments))


def compute_jax(request):
    function, arguments = jax_function(request)
    if request["mode"] == "infer":
        return {"y": numpy.asarray(function(*arguments)).ravel().tolist()}
    y, (d_x, d_parameters) = function(*arguments)
    gradients = [numpy.asarray(g).ravel().tolist() for g in (d_x, *d_parameters)]
    return {"y": numpy.asarray(y).ravel().tolist(), "gradients": gradients}


# --- ONNX Runtime ---------------------------------------------------------------------


def reordered(matrix, cell):
    """Gates in the order of ONNX's operator."""
    blocks = dict(zip(GATES[cell], numpy.split(matrix, len(GATES[cell])), strict=True))
    return numpy.concatenate([blocks[gate] for gate in ONNX_GATES[cell]])[None]


def onnx_model(request, parameters):
    """One recurrent operator with its weights inside, x in and y out."""
    from onnx import TensorProto, helper, numpy_helper

    cell, hidden = request["cell"], request["hidden"]
    second = numpy.zeros_like(parameters["b"])
    if cell == "GRU":
        second[-hidden:] = parameters["d"]
    biases = [reordered(b, cell) for b in (parameters["b"], second)]
    weights = {
        "W": reordered(parameters["W"], cell),
        "R": reordered(parameters["U"], cell),
        "B": numpy.concatenate(biases, 1),
    }
    options = {"linear_before_reset": 1} if cell == "GRU" else {}
    nodes = [
        helper.make_node(
            ONNX_NAMES[cell], ["x", *weights], ["directions"], hidden_size=hidden, **options
        ),
        helper.make_node("Squeeze", ["directions", "axis"], ["y"]),
    ]
    constants = [numpy_helper.from_array(v, n) for n, v in weights.items()]
    constants.append(numpy_helper.from_array(numpy.array([1], "int64"), "axis"))
    shape = [request["steps"], request["batch"], hidden]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy"]
    graph = helper.make_graph(nodes, cell, ends[:1], ends[1:], constants)
    opset = [helper.make_opsetid("", 14)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def onnx_session(request):
    import onnxruntime

    x, _, parameters = arrays(request)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.force_spinning_stop", "1")  # leave the cores free
    model = onnx_model(request, parameters)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]), x


def prepare_onnx(request):
    session, x = onnx_session(request)
    return lambda: session.run(None, {"x": x})


def compute_onnx(request):
    session, x = onnx_session(request)
    return {"y": session.run(None, {"x": x})[0].ravel().tolist()}


# --- requests -------------------------------------------------------------------------

PREPARE = {"jax": prepare_jax, "onnx": prepare_onnx}
COMPUTE = {"jax": compute_jax, "onnx": compute_onnx}


def answer(request):
    if request["do"] == "hello":
        return hello(request)
    who = request["who"]
    if request["do"] == "compute":
        return COMPUTE[who](request)
    if request["do"] == "prepare":
        ready.pop(who, None)
        ready[who] = PREPARE[who](request)
        return {}
    begin = time.perf_counter()
    for _ in range(request["times"]):
        ready[who]()
    return {"seconds": time.perf_counter() - begin}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not stand among the answers
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as problem:
            reply = {"error": f"{type(problem).__name__}: {problem}".splitlines()[0]}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
