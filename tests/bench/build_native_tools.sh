#!/bin/sh
# Builds llama.cpp's own tools at the very commit that the installed llama-cpp-python was built from: ratios are taken
# against nothing else. Needs a C++ compiler and cmake; takes some minutes. CMAKE_ARGS are passed on to cmake, as in the
# build of llama-cpp-python itself (CMAKE_ARGS=-DGGML_CUDA=on).
#
#   uv run tests/bench/build_native_tools.sh FOLDER
#
# and then, as it prints: export LOCALINFER_NATIVE_TOOLS=FOLDER/build/bin
set -eu
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
command -v cmake >/dev/null || { echo "$0: cmake is needed" >&2; exit 1; }
python=${PYTHON:-python}
version=$("$python" -c 'from importlib.metadata import version; print(version("llama-cpp-python"))')
mkdir -p "$1"
cd "$1"
source=llama_cpp_python-$version
if [ ! -d "$source" ]; then
    "$python" -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest . "llama-cpp-python==$version" >&2
    tar xzf "$source.tar.gz"
fi
# shellcheck disable=SC2086 -- CMAKE_ARGS is a list
cmake -S "$source/vendor/llama.cpp" -B build -DCMAKE_BUILD_TYPE=Release \
    -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON ${CMAKE_ARGS:-} >cmake.log
cmake --build build --config Release --parallel "$(getconf _NPROCESSORS_ONLN)" \
    --target llama-bench llama-server llama-batched-bench llama-quantize >build.log
echo "export LOCALINFER_NATIVE_TOOLS=$PWD/build/bin"
