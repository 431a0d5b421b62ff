/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A plugin in C++17: one device whose memory is host memory. No exception leaves the plugin. */
#define DS_ACCEL_TYPED_HANDLES
#include <ds-accel/plugin-api.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>

struct ds_accel_plugin_instance {
    const ds_accel_host *host;
};

struct ds_accel_plugin_device {
    std::mutex mutex;
    std::map<void *, std::pair<uint64_t, std::align_val_t>> blocks;
    uint64_t used_bytes = 0;
};

namespace {

constexpr uint64_t align_least = 256;
constexpr uint64_t limit_bytes = uint64_t{1} << 30;

/* Exception that carries a status and its cause to the function that the host called. */
struct failure : std::exception {
    int32_t status;
    std::string cause;
    failure(int32_t status_, std::string cause_) : status(status_), cause(std::move(cause_))
    {
    }
};

int32_t fill_error(ds_accel_error *error, int32_t status, const std::string &cause) noexcept
{
    error->code = status;
    error->message[cause.copy(error->message, sizeof(error->message) - 1)] = '\0';
    return status;
}

/* Run a call and return its status; an exception becomes a status. */
template <typename Call> int32_t answer(ds_accel_error *error, Call call) noexcept
{
    auto status = DS_ACCEL_OK;

    try {
        call();
    } catch (const failure &caught) {
        status = fill_error(error, caught.status, caught.cause);
    } catch (const std::bad_alloc &) {
        status = fill_error(error, DS_ACCEL_ERR_NO_MEMORY, "no memory");
    } catch (...) {
        status = fill_error(error, DS_ACCEL_ERR_INTERNAL, "an exception");
    }
    return status;
}

int32_t probe(const ds_accel_host *, ds_accel_verdict *verdict_out, ds_accel_error *)
{
    ds_accel_verdict verdict{};

    verdict.state = DS_ACCEL_PROBE_AVAILABLE;
    verdict.device_count = 1;
    verdict.detail[std::string("built in").copy(verdict.detail, sizeof(verdict.detail) - 1)] = '\0';
    ds_accel_write(verdict_out, &verdict, sizeof(verdict));
    return DS_ACCEL_OK;
}

int32_t init(const ds_accel_host *host, ds_accel_plugin_instance_t **instance_out,
             ds_accel_error *error)
{
    return answer(error, [&] { *instance_out = new ds_accel_plugin_instance{host}; });
}

void shutdown(ds_accel_plugin_instance_t *instance)
{
    delete instance;
}

int32_t device_count(ds_accel_plugin_instance_t *, uint32_t *count_out, ds_accel_error *)
{
    *count_out = 1;
    return DS_ACCEL_OK;
}

int32_t device_open(ds_accel_plugin_instance_t *, uint32_t device_index,
                    ds_accel_plugin_device_t **device_out, ds_accel_error *error)
{
    return answer(error, [&] {
        if (device_index > 0) {
            throw failure(DS_ACCEL_ERR_INVALID,
                          "device_open: no device " + std::to_string(device_index));
        }
        *device_out = new ds_accel_plugin_device;
    });
}

void device_close(ds_accel_plugin_device_t *device)
{
    delete device;
}

int32_t mem_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint64_t align_bytes,
                  uint32_t flags, void **pointer_out, ds_accel_error *error)
{
    return answer(error, [&] {
        const auto align = std::align_val_t{align_bytes > align_least ? align_bytes : align_least};
        const std::lock_guard lock(device->mutex);

        if (flags != 0 || size_bytes == 0 || size_bytes > PTRDIFF_MAX ||
            (align_bytes & (align_bytes - 1)) != 0) {
            throw failure(DS_ACCEL_ERR_INVALID, "mem_alloc: size, alignment or flags");
        }
        if (size_bytes > limit_bytes - device->used_bytes) {
            throw failure(DS_ACCEL_ERR_NO_MEMORY,
                          "mem_alloc: no " + std::to_string(size_bytes) + " bytes");
        }
        void *pointer = ::operator new(size_bytes, align);
        device->blocks.emplace(pointer, std::pair(size_bytes, align));
        device->used_bytes += size_bytes;
        *pointer_out = pointer;
    });
}

int32_t mem_free(ds_accel_plugin_device_t *device, void *pointer, ds_accel_error *error)
{
    return answer(error, [&] {
        if (pointer == nullptr) {
            return;
        }
        const std::lock_guard lock(device->mutex);
        const auto found = device->blocks.find(pointer);

        if (found == device->blocks.end()) {
            throw failure(DS_ACCEL_ERR_INVALID, "mem_free: the pointer is not allocated");
        }
        ::operator delete(pointer, found->second.second);
        device->used_bytes -= found->second.first;
        device->blocks.erase(found);
    });
}

int32_t mem_copy(ds_accel_plugin_device_t *, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, ds_accel_error *error)
{
    if (kind == DS_ACCEL_COPY_INFER) {
        return fill_error(error, DS_ACCEL_ERR_UNSUPPORTED, "mem_copy: kind INFER");
    }
    if (kind < DS_ACCEL_COPY_HOST_TO_HOST || kind > DS_ACCEL_COPY_DEVICE_TO_DEVICE) {
        return fill_error(error, DS_ACCEL_ERR_INVALID, "mem_copy: no such kind");
    }
    memcpy(destination, source, size_bytes);
    return DS_ACCEL_OK;
}

/* Native handles, as a vendor's library would accept them: this plugin has one for its device only. */
int32_t native_get(ds_accel_plugin_device_t *device, uint32_t kind,
                   const ds_accel_plugin_object_t *object, uint64_t *native_out,
                   uint64_t *offset_bytes_out, ds_accel_error *error)
{
    if (kind < DS_ACCEL_NATIVE_DEVICE || kind > DS_ACCEL_NATIVE_GRAPH_EXEC) {
        return fill_error(error, DS_ACCEL_ERR_INVALID, "native_get: no such kind");
    }
    if (kind != DS_ACCEL_NATIVE_DEVICE || ds_accel_object_as_device(object) != device) {
        return fill_error(error, DS_ACCEL_ERR_UNSUPPORTED, "native_get: only for the device");
    }
    *native_out = 7;
    *offset_bytes_out = 0;
    return DS_ACCEL_OK;
}

void fill(ds_accel_plugin *table)
{
    table->probe = probe;
    table->init = init;
    table->shutdown = shutdown;
    table->device_count = device_count;
    table->device_open = device_open;
    table->device_close = device_close;
    table->mem_alloc = mem_alloc;
    table->mem_free = mem_free;
    table->mem_copy = mem_copy;
    table->native_get = native_get;
}

} // namespace

DS_ACCEL_PLUGIN("cxx", "C++ Vendor", "1.2.3", 0, DS_ACCEL_FEATURE_DEMAND_ONLY, fill);
