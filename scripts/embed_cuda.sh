#!/bin/sh
# embed_cuda.sh: compiles the device code that the program carries anew. embed_cuda.sh --help says from what.
set -u
case ${1:-} in
'') ;;
-h | --help)
    cat <<'END' || exit 5
embed_cuda.sh     compiles the device code that the program carries as PTX anew: src/device/cuda/embedded.h

It takes NVRTC 12.0, whose PTX every driver from CUDA 12.0 on reads: the file that COLDBENCH_NVRTC names, or
build/nvrtc-12.0/libnvrtc.so.12.

Status: 0; 2 usage; 3 there is no NVRTC; else that of the command that failed.
END
    exit 0
    ;;
*)
    echo "embed_cuda: '$1' is no option; --help is the only one" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.." || exit 1
build=build/embed
nvrtc=${COLDBENCH_NVRTC:-$PWD/build/nvrtc-12.0/libnvrtc.so.12}
if [ ! -e "$nvrtc" ]; then
    cat >&2 <<END
embed_cuda: there is no $nvrtc. To have it:
    python3 -m pip download --no-deps -d build nvidia-cuda-nvrtc-cu12==12.0.140
    unzip -jo build/nvidia_cuda_nvrtc_cu12-12.0.140-*.whl '*.so*' -d build/nvrtc-12.0
END
    exit 3
fi
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF >/dev/null &&
    cmake --build $build --target embed_cuda >/dev/null &&
    COLDBENCH_NVRTC=$nvrtc $build/embed_cuda .
