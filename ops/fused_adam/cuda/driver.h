/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The functions of CUDA's driver that fused_adam calls, from "CUDA Driver API", version 12.1, and
 * the loading of libcuda.so.1. The library is opened when it is first needed, so that the op can be
 * loaded without a driver.
 */
#ifndef OPS_FUSED_ADAM_DRIVER_H
#define OPS_FUSED_ADAM_DRIVER_H

#include "op.h"

#define OPS__CUDA_ERROR_OUT_OF_MEMORY 2
#define OPS__CUDA_ERROR_NO_DEVICE 100
#define OPS__CUDA_ERROR_INVALID_IMAGE 200
#define OPS__CUDA_ERROR_INVALID_CONTEXT 201
#define OPS__CUDA_ERROR_NO_BINARY_FOR_GPU 209
#define OPS__CUDA_ERROR_INVALID_PTX 218
#define OPS__CUDA_ERROR_UNSUPPORTED_PTX_VERSION 222
#define OPS__CUDA_ERROR_NOT_SUPPORTED 801

#define OPS__CUDA_MULTIPROCESSOR_COUNT 16 /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */

/* Pointers to CUcontext, CUstream, CUlibrary and CUkernel are pointers to void here; a CUdeviceptr
 * is an unsigned long long. */
struct ops__cuda {
    int (*init)(unsigned flags);
    int (*version)(int *version_out); /* 1000 * major + 10 * minor */
    int (*error_name)(int error, const char **name_out);
    int (*error_string)(int error, const char **text_out);
    int (*stream_context)(void *stream, void **context_out);
    int (*push_context)(void *context);
    int (*pop_context)(void **context_out);
    int (*current_device)(int *device_out);
    int (*device_attribute)(int *value_out, int attribute, int device);
    int (*load_library)(void **library_out, const void *code, int *jit_options,
                        void **jit_option_values, unsigned jit_option_count, int *library_options,
                        void **library_option_values, unsigned library_option_count);
    int (*get_kernel)(void **kernel_out, void *library, const char *name);
    int (*launch)(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
                  void **parameters, void **extra);
    int (*allocate)(unsigned long long *memory_out, size_t bytes, void *stream);
    int (*release)(unsigned long long memory, void *stream);
    int (*fill)(unsigned long long memory, unsigned char byte, size_t bytes, void *stream);
    int (*read)(void *to, unsigned long long from, size_t bytes, void *stream);
    int (*synchronize)(void *stream);
    /* Kernels, for every device: kernel.h. */
    void *update;
    void *sum;
    void *finish;
};

/* Open the driver and load the kernels, once per process. *cuda_out is written only on
 * DS_ACCEL_OK. */
int32_t ops__cuda_open(const char *call, const struct ops__cuda **cuda_out,
                       struct ds_accel_error *error);
/* Set *error, if it is not NULL, to a failure of a function of the driver; return the status. */
int32_t ops__cuda_failed(const struct ops__cuda *cuda, const char *call, const char *function,
                         int code, struct ds_accel_error *error);

#endif
