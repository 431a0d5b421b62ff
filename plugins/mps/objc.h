/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Metal from C: the functions of the Objective-C runtime that the plugin uses, and the names of the
 * methods. A method is an ordinary function (receiver, selector, arguments...) that
 * class_getMethodImplementation() returns, and send.c calls it through a pointer of its exact type,
 * so the plugin needs neither objc_msgSend() with its architecture-specific calling convention nor
 * an Objective-C compiler.
 *
 * Selectors and signatures come from Apple's documents and from the code of ggml and nvtop; numbers
 * (storage modes, states) were not verified on a Mac.
 */
#ifndef DS_ACCEL_PLUGINS_MPS_OBJC_H
#define DS_ACCEL_PLUGINS_MPS_OBJC_H

#include <stddef.h>
#include <stdint.h>

typedef void *objc_id;
typedef void *objc_sel;
typedef void (*objc_imp)(void);

/* NSRange, passed by value. */
struct ns_range {
    unsigned long location;
    unsigned long length;
};
_Static_assert(sizeof(struct ns_range) == 16, "NSRange is two words");

#define MTL_STORAGE_SHARED 0u

/* MTLCommandBufferStatus */
#define MTL_STATUS_COMPLETED 4u
#define MTL_STATUS_ERROR 5u

struct objc {
    objc_sel (*sel_registerName)(const char *name);
    void *(*object_getClass)(objc_id object);
    objc_imp (*class_getMethodImplementation)(void *class, objc_sel selector);
    signed char (*class_respondsToSelector)(void *class, objc_sel selector);
    void *(*objc_autoreleasePoolPush)(void);
    void (*objc_autoreleasePoolPop)(void *pool);
    objc_id (*objc_retain)(objc_id object);
    void (*objc_release)(objc_id object);
};

struct metal {
    objc_id (*MTLCreateSystemDefaultDevice)(void);
};

/*
 * Selectors. In a member's name an underscore stands for a colon; two long names are shortened,
 * newBufferWithBytesNoCopy_ and copyFromBuffer_.
 */
#define MPS_SELECTORS(X) \
    X(name, "name") \
    X(UTF8String, "UTF8String") \
    X(recommendedMaxWorkingSetSize, "recommendedMaxWorkingSetSize") \
    X(currentAllocatedSize, "currentAllocatedSize") \
    X(maxBufferLength, "maxBufferLength") \
    X(newCommandQueue, "newCommandQueue") \
    X(newSharedEvent, "newSharedEvent") \
    X(newBufferWithLength_options_, "newBufferWithLength:options:") \
    X(newBufferWithBytesNoCopy_, "newBufferWithBytesNoCopy:length:options:deallocator:") \
    X(contents, "contents") \
    X(commandBuffer, "commandBuffer") \
    X(blitCommandEncoder, "blitCommandEncoder") \
    X(copyFromBuffer_, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:") \
    X(fillBuffer_range_value_, "fillBuffer:range:value:") \
    X(endEncoding, "endEncoding") \
    X(commit, "commit") \
    X(waitUntilCompleted, "waitUntilCompleted") \
    X(status, "status") \
    X(error, "error") \
    X(code, "code") \
    X(GPUEndTime, "GPUEndTime") \
    X(encodeSignalEvent_value_, "encodeSignalEvent:value:") \
    X(encodeWaitForEvent_value_, "encodeWaitForEvent:value:") \
    X(signaledValue, "signaledValue") \
    X(setSignaledValue_, "setSignaledValue:")

struct mps_selectors {
#define X(member, text) objc_sel member;
    MPS_SELECTORS(X)
#undef X
};

#endif
