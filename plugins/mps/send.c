/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * One function for each method signature. The function pointer has the method's exact type: with
 * another type, such as a variadic one, Apple's calling convention would pass the arguments in
 * other places.
 */
#include "mps.h"

static objc_imp find(const struct mps_runtime *runtime, objc_id object, objc_sel selector)
{
    return runtime->objc.class_getMethodImplementation(runtime->objc.object_getClass(object),
                                                       selector);
}

int mps_responds(const struct mps_runtime *runtime, objc_id object, objc_sel selector)
{
    return runtime->objc.class_respondsToSelector(runtime->objc.object_getClass(object),
                                                  selector) != 0;
}

objc_id mps_send_id(const struct mps_runtime *runtime, objc_id object, objc_sel selector)
{
    return ((objc_id(*)(objc_id, objc_sel))find(runtime, object, selector))(object, selector);
}

/* NSUInteger, NSInteger, uint64_t and const char * each occupy one word. */
uint64_t mps_send_word(const struct mps_runtime *runtime, objc_id object, objc_sel selector)
{
    return ((uint64_t(*)(objc_id, objc_sel))find(runtime, object, selector))(object, selector);
}

double mps_send_double(const struct mps_runtime *runtime, objc_id object, objc_sel selector)
{
    return ((double (*)(objc_id, objc_sel))find(runtime, object, selector))(object, selector);
}

void mps_send(const struct mps_runtime *runtime, objc_id object, objc_sel selector)
{
    ((void (*)(objc_id, objc_sel))find(runtime, object, selector))(object, selector);
}

void mps_send_value(const struct mps_runtime *runtime, objc_id object, objc_sel selector,
                    uint64_t value)
{
    ((void (*)(objc_id, objc_sel, uint64_t))find(runtime, object, selector))(object, selector,
                                                                             value);
}

void mps_send_event(const struct mps_runtime *runtime, objc_id object, objc_sel selector,
                    objc_id event, uint64_t value)
{
    ((void (*)(objc_id, objc_sel, objc_id, uint64_t))find(runtime, object, selector))(
        object, selector, event, value);
}

objc_id mps_new_buffer(const struct mps_runtime *runtime, uint64_t size_bytes)
{
    objc_sel selector = runtime->sel.newBufferWithLength_options_;

    return ((objc_id(*)(objc_id, objc_sel, unsigned long, unsigned long))find(
        runtime, runtime->device, selector))(runtime->device, selector, size_bytes,
                                             MTL_STORAGE_SHARED);
}

/* There is no deallocator block, so the caller keeps ownership of the bytes. */
objc_id mps_wrap_bytes(const struct mps_runtime *runtime, void *pointer, uint64_t size_bytes)
{
    objc_sel selector = runtime->sel.newBufferWithBytesNoCopy_;

    return ((objc_id(*)(objc_id, objc_sel, void *, unsigned long, unsigned long, void *))find(
        runtime, runtime->device, selector))(runtime->device, selector, pointer, size_bytes,
                                             MTL_STORAGE_SHARED, NULL);
}

void mps_encode_copy(const struct mps_runtime *runtime, objc_id encoder, objc_id source,
                     uint64_t source_offset, objc_id destination, uint64_t destination_offset,
                     uint64_t size_bytes)
{
    objc_sel selector = runtime->sel.copyFromBuffer_;

    ((void (*)(objc_id, objc_sel, objc_id, unsigned long, objc_id, unsigned long,
               unsigned long))find(runtime, encoder, selector))(
        encoder, selector, source, source_offset, destination, destination_offset, size_bytes);
}

void mps_encode_fill(const struct mps_runtime *runtime, objc_id encoder, objc_id buffer,
                     uint64_t offset, uint64_t size_bytes, uint8_t value)
{
    objc_sel selector = runtime->sel.fillBuffer_range_value_;
    struct ns_range range = {offset, size_bytes};

    ((void (*)(objc_id, objc_sel, objc_id, struct ns_range, uint8_t))find(
        runtime, encoder, selector))(encoder, selector, buffer, range, value);
}
