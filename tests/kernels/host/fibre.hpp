// Fibres: several stacks in one operating-system thread, switched by hand. A few instructions on x86-64 and 64-bit ARM with
// ELF; `ucontext` elsewhere, or with EMULATOR_PORTABLE.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(EMULATOR_PORTABLE)
#define EMULATOR_ASSEMBLY
#else
#include <ucontext.h>
#endif

namespace emulator {

typedef void (*Entry)();

#ifdef EMULATOR_ASSEMBLY

// Saves the registers that a callee must keep on the stack and its pointer in *save, then takes up what `load` points at.
extern "C" void emulator_switch(void** save, void* load) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
asm(R"(
    .text
    .globl emulator_switch
    .hidden emulator_switch
    .type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulator_switch, . - emulator_switch
)");
// Six registers, the entry as the address to return to, and one word so that the entry finds its stack aligned.
constexpr int FRAME = 8, ENTRY_AT = 6;
#else
asm(R"(
    .text
    .globl emulator_switch
    .hidden emulator_switch
    .type emulator_switch, %function
emulator_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size emulator_switch, . - emulator_switch
)");
// Twelve registers, the last of them the address to return to, and eight floating-point ones.
constexpr int FRAME = 20, ENTRY_AT = 11;
#endif

// What is kept of a fibre that does not run.
struct Fibre {
    void* stack_pointer = nullptr;

    // Makes the fibre start with `entry`, which must not return, when it is switched to.
    void prepare(char* stack, size_t bytes, Entry entry) {
        const uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t(15);
        void** frame = reinterpret_cast<void**>(top) - FRAME;
        for (int i = 0; i < FRAME; i++) frame[i] = nullptr;
        frame[ENTRY_AT] = reinterpret_cast<void*>(entry);
        stack_pointer = frame;
    }
};

inline void switch_fibres(Fibre& from, Fibre& to) { emulator_switch(&from.stack_pointer, to.stack_pointer); }

#else

struct Fibre {
    ucontext_t context;

    void prepare(char* stack, size_t bytes, Entry entry) {
        getcontext(&context);
        context.uc_stack.ss_sp = stack;
        context.uc_stack.ss_size = bytes;
        context.uc_link = nullptr;
        makecontext(&context, entry, 0);
    }
};

inline void switch_fibres(Fibre& from, Fibre& to) { swapcontext(&from.context, &to.context); }

#endif

} // namespace emulator
