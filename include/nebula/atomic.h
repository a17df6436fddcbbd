// SPDX-License-Identifier: MIT
#pragma once

// The atomics shim: every atomic access of the library goes through these functions, and each name says its memory
// order. Plain structs instead of _Atomic, so that public headers stay valid C++17. Not an API to build on: the nbi_
// names are here only because inline functions of other headers need them.
//
// With NB_EXPLORE defined, each access first calls nbi_explore_point, where a test's virtual scheduler may switch
// threads.
//
//     nb_atomic_u32 flag = {0};
//     nbi_atomic_store_release_u32(&flag, 1);
//     if (nbi_atomic_load_acquire_u32(&flag)) { ... }

#include "nebula/types.h"

typedef struct nb_atomic_u32 {
    uint32_t value;
} nb_atomic_u32;

typedef struct nb_atomic_u64 {
#if defined(__GNUC__)
    __attribute__((aligned(8)))
#endif
    uint64_t value;
} nb_atomic_u64;

typedef struct nb_atomic_ptr {
    void *value;
} nb_atomic_ptr;

NB_STATIC_ASSERT(sizeof(nb_atomic_u32) == 4, "a futex word is 32 bits");
NB_STATIC_ASSERT(sizeof(nb_atomic_u64) == 8, "tagged words are 64 bits");

#if defined(NB_EXPLORE)
NB_EXTERN_C_BEGIN
void nbi_explore_point(const volatile void *address);
NB_EXTERN_C_END
#define NBI_POINT(address) nbi_explore_point(address)
#else
#define NBI_POINT(address) ((void)0)
#endif

#define NBI_DEFINE_LOAD(suffix, type, value_type, order_name, order)                   \
    NB_INLINE value_type nbi_atomic_load_##order_name##_##suffix(const type *atomic) { \
        NBI_POINT(atomic);                                                             \
        return __atomic_load_n(&atomic->value, order);                                 \
    }

#define NBI_DEFINE_STORE(suffix, type, value_type, order_name, order)                           \
    NB_INLINE void nbi_atomic_store_##order_name##_##suffix(type *atomic, value_type desired) { \
        NBI_POINT(atomic);                                                                      \
        __atomic_store_n(&atomic->value, desired, order);                                       \
    }

// exchange returns the old value.
#define NBI_DEFINE_EXCHANGE(suffix, type, value_type, order_name, order)                                 \
    NB_INLINE value_type nbi_atomic_exchange_##order_name##_##suffix(type *atomic, value_type desired) { \
        NBI_POINT(atomic);                                                                               \
        return __atomic_exchange_n(&atomic->value, desired, order);                                      \
    }

// compare_exchange is strong; on failure *expected holds what was found.
#define NBI_DEFINE_CAS(suffix, type, value_type, order_name, order, failure)                               \
    NB_INLINE bool nbi_atomic_compare_exchange_##order_name##_##suffix(type *atomic, value_type *expected, \
                                                                       value_type desired) {               \
        NBI_POINT(atomic);                                                                                 \
        return __atomic_compare_exchange_n(&atomic->value, expected, desired, 0, order, failure);          \
    }

// The fetch operations return the old value.
#define NBI_DEFINE_FETCH(operation, suffix, type, value_type, order_name, order)                                    \
    NB_INLINE value_type nbi_atomic_fetch_##operation##_##order_name##_##suffix(type *atomic, value_type operand) { \
        NBI_POINT(atomic);                                                                                          \
        return __atomic_fetch_##operation(&atomic->value, operand, order);                                          \
    }

#define NBI_DEFINE_ALL(suffix, type, value_type)                                          \
    NBI_DEFINE_LOAD(suffix, type, value_type, relaxed, __ATOMIC_RELAXED)                  \
    NBI_DEFINE_LOAD(suffix, type, value_type, acquire, __ATOMIC_ACQUIRE)                  \
    NBI_DEFINE_LOAD(suffix, type, value_type, seq_cst, __ATOMIC_SEQ_CST)                  \
    NBI_DEFINE_STORE(suffix, type, value_type, relaxed, __ATOMIC_RELAXED)                 \
    NBI_DEFINE_STORE(suffix, type, value_type, release, __ATOMIC_RELEASE)                 \
    NBI_DEFINE_EXCHANGE(suffix, type, value_type, acquire, __ATOMIC_ACQUIRE)              \
    NBI_DEFINE_EXCHANGE(suffix, type, value_type, release, __ATOMIC_RELEASE)              \
    NBI_DEFINE_EXCHANGE(suffix, type, value_type, seq_cst, __ATOMIC_SEQ_CST)              \
    NBI_DEFINE_CAS(suffix, type, value_type, relaxed, __ATOMIC_RELAXED, __ATOMIC_RELAXED) \
    NBI_DEFINE_CAS(suffix, type, value_type, acquire, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE) \
    NBI_DEFINE_CAS(suffix, type, value_type, release, __ATOMIC_RELEASE, __ATOMIC_RELAXED) \
    NBI_DEFINE_CAS(suffix, type, value_type, acq_rel, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) \
    NBI_DEFINE_CAS(suffix, type, value_type, seq_cst, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

#define NBI_DEFINE_ARITHMETIC(suffix, type, value_type)                        \
    NBI_DEFINE_FETCH(add, suffix, type, value_type, relaxed, __ATOMIC_RELAXED) \
    NBI_DEFINE_FETCH(add, suffix, type, value_type, acq_rel, __ATOMIC_ACQ_REL) \
    NBI_DEFINE_FETCH(add, suffix, type, value_type, seq_cst, __ATOMIC_SEQ_CST) \
    NBI_DEFINE_FETCH(sub, suffix, type, value_type, relaxed, __ATOMIC_RELAXED) \
    NBI_DEFINE_FETCH(sub, suffix, type, value_type, release, __ATOMIC_RELEASE) \
    NBI_DEFINE_FETCH(sub, suffix, type, value_type, acq_rel, __ATOMIC_ACQ_REL) \
    NBI_DEFINE_FETCH(sub, suffix, type, value_type, seq_cst, __ATOMIC_SEQ_CST) \
    NBI_DEFINE_FETCH(or, suffix, type, value_type, acq_rel, __ATOMIC_ACQ_REL)  \
    NBI_DEFINE_FETCH(or, suffix, type, value_type, seq_cst, __ATOMIC_SEQ_CST)  \
    NBI_DEFINE_FETCH(and, suffix, type, value_type, seq_cst, __ATOMIC_SEQ_CST)

NBI_DEFINE_ALL(u32, nb_atomic_u32, uint32_t)
NBI_DEFINE_ARITHMETIC(u32, nb_atomic_u32, uint32_t)
NBI_DEFINE_ALL(u64, nb_atomic_u64, uint64_t)
NBI_DEFINE_ARITHMETIC(u64, nb_atomic_u64, uint64_t)
NBI_DEFINE_ALL(ptr, nb_atomic_ptr, void *)

#undef NBI_DEFINE_ALL
#undef NBI_DEFINE_ARITHMETIC
#undef NBI_DEFINE_LOAD
#undef NBI_DEFINE_STORE
#undef NBI_DEFINE_EXCHANGE
#undef NBI_DEFINE_CAS
#undef NBI_DEFINE_FETCH
