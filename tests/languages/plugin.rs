// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the ds-accel authors
//
// A plugin in Rust: one device whose memory is host memory. `ds-accel note` generates the note and
// bindgen the types; std is the only crate that is needed.
#![allow(clippy::missing_safety_doc)]

#[allow(dead_code, non_camel_case_types, non_upper_case_globals)]
mod api {
    include!(env!("PLUGIN_API"));
}
use api::*;
use std::alloc::{alloc, dealloc, Layout};
use std::collections::HashMap;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{addr_of_mut, write_bytes};
use std::sync::{Mutex, Once};

std::arch::global_asm!(include_str!(env!("PLUGIN_NOTE")));

const ALIGN_BYTES: u64 = 256;
const LIMIT_BYTES: u64 = 1 << 30;

/// The instance that init() creates; its handle is a pointer to this struct.
struct Instance;

struct Memory {
    layouts: HashMap<usize, Layout>,
    used_bytes: u64,
}

/// The device that device_open() creates.
struct Device {
    memory: Mutex<Memory>,
}

/// The result of a call: nothing, or the status and cause of a failure.
type Answer = Result<(), (i32, String)>;

fn refuse(status: i32, cause: impl Into<String>) -> Answer {
    Err((status, cause.into()))
}

/// Run a call and return its status for the host, with the error filled. A panic becomes a status.
unsafe fn answer(error: *mut ds_accel_error, call: impl FnOnce() -> Answer) -> i32 {
    let (status, cause) = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return DS_ACCEL_OK,
        Ok(Err(failure)) => failure,
        Err(_) => (DS_ACCEL_ERR_INTERNAL, "the plugin panicked".to_string()),
    };
    let mut length = cause.len().min((*error).message.len() - 1);
    while !cause.is_char_boundary(length) {
        length -= 1;
    }
    (*error).code = status;
    copy_text(&mut (*error).message, &cause[..length]);
    status
}

/// Copy a text and its NUL to a field in which they are known to fit.
fn copy_text(field: &mut [c_char], text: &str) {
    for (to, from) in field.iter_mut().zip(text.bytes().chain([0])) {
        *to = from as c_char;
    }
}

/// As ds_accel_write() in C: copy the bytes that both structs have, and leave the size of the
/// destination unchanged.
unsafe fn write<T>(destination: *mut T, source: &T) {
    let size = (*destination.cast::<u32>()).min(std::mem::size_of::<T>() as u32) as usize;
    if size > 4 {
        let from = (source as *const T).cast::<u8>();
        std::ptr::copy_nonoverlapping(from.add(4), destination.cast::<u8>().add(4), size - 4);
    }
}

unsafe extern "C" fn probe(
    _host: *const ds_accel_host,
    verdict: *mut ds_accel_verdict,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || {
        let mut found: ds_accel_verdict = std::mem::zeroed();
        found.state = DS_ACCEL_PROBE_AVAILABLE;
        found.device_count = 1;
        copy_text(&mut found.detail, "built in");
        write(verdict, &found);
        Ok(())
    })
}

unsafe extern "C" fn init(
    _host: *const ds_accel_host,
    instance_out: *mut *mut ds_accel_plugin_instance_t,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || {
        *instance_out = Box::into_raw(Box::new(Instance)).cast();
        Ok(())
    })
}

unsafe extern "C" fn shutdown(instance: *mut ds_accel_plugin_instance_t) {
    if !instance.is_null() {
        drop(Box::from_raw(instance.cast::<Instance>()));
    }
}

unsafe extern "C" fn device_count(
    _instance: *mut ds_accel_plugin_instance_t,
    count_out: *mut u32,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || {
        *count_out = 1;
        Ok(())
    })
}

fn check_index(call: &str, device_index: u32) -> Answer {
    if device_index > 0 {
        return refuse(DS_ACCEL_ERR_INVALID, format!("{call}: no device {device_index}; there is one"));
    }
    Ok(())
}

unsafe extern "C" fn device_identity(
    _instance: *mut ds_accel_plugin_instance_t,
    device_index: u32,
    identity_out: *mut ds_accel_device_identity,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || {
        check_index("device_identity", device_index)?;
        let mut identity: ds_accel_device_identity = std::mem::zeroed();
        identity.power_state = DS_ACCEL_POWER_ACTIVE;
        identity.total_memory_bytes = LIMIT_BYTES;
        copy_text(&mut identity.name, "Rust device");
        write(identity_out, &identity);
        Ok(())
    })
}

unsafe extern "C" fn device_open(
    _instance: *mut ds_accel_plugin_instance_t,
    device_index: u32,
    device_out: *mut *mut ds_accel_plugin_device_t,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || {
        check_index("device_open", device_index)?;
        let memory = Mutex::new(Memory { layouts: HashMap::new(), used_bytes: 0 });
        *device_out = Box::into_raw(Box::new(Device { memory })).cast();
        Ok(())
    })
}

unsafe extern "C" fn device_close(device: *mut ds_accel_plugin_device_t) {
    if !device.is_null() {
        drop(Box::from_raw(device.cast::<Device>()));
    }
}

unsafe extern "C" fn device_info(
    _device: *mut ds_accel_plugin_device_t,
    info_out: *mut ds_accel_device_info,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || {
        let mut info: ds_accel_device_info = std::mem::zeroed();
        copy_text(&mut info.name, "Rust device");
        info.total_memory_bytes = LIMIT_BYTES;
        info.warp_size = 1;
        info.allocation_align_bytes = ALIGN_BYTES;
        write(info_out, &info);
        Ok(())
    })
}

unsafe extern "C" fn mem_alloc(
    device: *mut ds_accel_plugin_device_t,
    size_bytes: u64,
    align_bytes: u64,
    flags: u32,
    pointer_out: *mut *mut c_void,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || {
        if flags != 0 || size_bytes == 0 || size_bytes > i64::MAX as u64 {
            let cause = format!("mem_alloc({size_bytes} bytes, flags {flags:#x})");
            return refuse(DS_ACCEL_ERR_INVALID, cause);
        }
        let align = align_bytes.max(ALIGN_BYTES) as usize;
        let layout = match Layout::from_size_align(size_bytes as usize, align) {
            Ok(layout) if align_bytes & align_bytes.wrapping_sub(1) == 0 => layout,
            _ => return refuse(DS_ACCEL_ERR_INVALID, format!("mem_alloc: alignment {align_bytes}")),
        };
        let mut memory = (*device.cast::<Device>()).memory.lock().unwrap();
        let pointer = match memory.used_bytes + size_bytes {
            used if used <= LIMIT_BYTES => alloc(layout),
            _ => std::ptr::null_mut(),
        };
        if pointer.is_null() {
            return refuse(DS_ACCEL_ERR_NO_MEMORY, format!("mem_alloc: no {size_bytes} bytes"));
        }
        memory.used_bytes += size_bytes;
        memory.layouts.insert(pointer as usize, layout);
        *pointer_out = pointer.cast();
        Ok(())
    })
}

unsafe extern "C" fn mem_free(
    device: *mut ds_accel_plugin_device_t,
    pointer: *mut c_void,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || {
        if pointer.is_null() {
            return Ok(());
        }
        let mut memory = (*device.cast::<Device>()).memory.lock().unwrap();
        let layout = match memory.layouts.remove(&(pointer as usize)) {
            Some(layout) => layout,
            None => return refuse(DS_ACCEL_ERR_INVALID, format!("mem_free: {pointer:?} is not allocated")),
        };
        memory.used_bytes -= layout.size() as u64;
        dealloc(pointer.cast(), layout);
        Ok(())
    })
}

unsafe extern "C" fn mem_copy(
    _device: *mut ds_accel_plugin_device_t,
    destination: *mut c_void,
    source: *const c_void,
    size_bytes: u64,
    kind: u32,
    error: *mut ds_accel_error,
) -> i32 {
    answer(error, || match kind {
        DS_ACCEL_COPY_HOST_TO_HOST..=DS_ACCEL_COPY_DEVICE_TO_DEVICE => {
            std::ptr::copy_nonoverlapping(source.cast::<u8>(), destination.cast(), size_bytes as usize);
            Ok(())
        }
        DS_ACCEL_COPY_INFER => refuse(DS_ACCEL_ERR_UNSUPPORTED, "mem_copy: kind INFER"),
        _ => refuse(DS_ACCEL_ERR_INVALID, format!("mem_copy: no kind {kind}")),
    })
}

static mut TABLE: std::mem::MaybeUninit<ds_accel_plugin> = std::mem::MaybeUninit::uninit();
static FILL: Once = Once::new();

/// The entry point, which DS_ACCEL_PLUGIN() defines in C.
#[no_mangle]
pub unsafe extern "C" fn ds_accel_entry_v1(_host: *const ds_accel_host) -> *const ds_accel_plugin {
    let table = addr_of_mut!(TABLE).cast::<ds_accel_plugin>();
    FILL.call_once(|| {
        write_bytes(table, 0, 1);
        (*table).struct_size = std::mem::size_of::<ds_accel_plugin>() as u32;
        (*table).abi_major = DS_ACCEL_ABI_MAJOR as u16;
        (*table).abi_minor = DS_ACCEL_ABI_MINOR as u16;
        (*table).optional_features = DS_ACCEL_FEATURE_DEMAND_ONLY as u64;
        (*table).name = b"rust\0".as_ptr().cast();
        (*table).vendor = b"Rust Vendor\0".as_ptr().cast();
        (*table).version = b"1.2.3\0".as_ptr().cast();
        (*table).probe = Some(probe);
        (*table).init = Some(init);
        (*table).shutdown = Some(shutdown);
        (*table).device_count = Some(device_count);
        (*table).device_identity = Some(device_identity);
        (*table).device_open = Some(device_open);
        (*table).device_close = Some(device_close);
        (*table).device_info = Some(device_info);
        (*table).mem_alloc = Some(mem_alloc);
        (*table).mem_free = Some(mem_free);
        (*table).mem_copy = Some(mem_copy);
    });
    table
}
