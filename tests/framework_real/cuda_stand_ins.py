# SPDX-License-Identifier: Apache-2.0
"""Lets PyTorch's wheel of PyPI, which is linked against CUDA, start on a machine that has no GPU, without two gigabytes of
CUDA's libraries.

One small library takes the places of those that libtorch_cuda.so is linked against. It defines every symbol that PyTorch
imports from them, as a routine that ends the process. Without a GPU PyTorch calls none of them. The CUDA runtime and CUPTI,
which PyTorch and Kineto do call to find that there is no GPU, are the real ones.
"""

import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path

# Libraries, and what the names of their functions begin with.
REPLACED = {
    "libcublas.so": "cublas", "libcublasLt.so": "cublasLt", "libcudnn.so": "cudnn", "libcufft.so": "cufft",
    "libcufile.so": "cuFile", "libcusolver.so": "cusolver", "libcusparse.so": "cusparse", "libcusparseLt.so": "cusparseLt",
    "libnccl.so": "nccl", "libnvrtc.so": "nvrtc", "libnvshmem_host.so": "nvshmem",
}
SYMBOL = re.compile(rf"\bU ((?:{'|'.join(sorted(REPLACED.values()))})\w*)(?:@(\S+))?")


def _output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def write_stand_ins(directory):
    """Writes the stand-ins into PyTorch's `lib` directory, where the loader looks for them; returns their names."""
    names, versions = set(), {}
    for library in sorted(directory.glob("libtorch*.so")):
        found = re.findall(r"\(NEEDED\).*\[(.+)\]", _output("readelf", "-dW", library))
        names.update(name for name in found if name.split(".so")[0] + ".so" in REPLACED)
        for symbol, version in SYMBOL.findall(_output("nm", "-D", "--undefined-only", library)):
            versions.setdefault(version, set()).add(symbol)
    # Symbols with a version win: an import without one accepts any.
    known = set().union(*(symbols for version, symbols in versions.items() if version))
    versions[""] = versions.get("", set()) - known
    with tempfile.TemporaryDirectory() as temporary:
        source, script = Path(temporary) / "stand_in.s", Path(temporary) / "stand_in.map"
        symbols = sorted(set().union(*versions.values()))
        source.write_text(".text\n" + "".join(f".globl {name}\n{name}:\n" for name in symbols) +
                          "call abort@PLT\n.section .note.GNU-stack\n", encoding="utf-8")
        script.write_text("".join(f"{version} {{ {'; '.join(sorted(its))}; }};\n"
                                  for version, its in sorted(versions.items()) if version), encoding="utf-8")
        target = directory / "libneurontrace_cuda_stand_in.so"
        _output("gcc", "-shared", f"-Wl,--version-script={script}", "-o", target, source)
    for name in names:
        link = directory / name
        link.unlink(missing_ok=True)
        link.symlink_to(target.name)
    return sorted(names)


def main():
    """In the environment of PyTorch, which cannot be imported before."""
    directory = Path(sysconfig.get_path("purelib")) / "torch" / "lib"
    print(f"{directory}: stand-ins for {', '.join(write_stand_ins(directory))}")


if __name__ == "__main__":
    main()
