// Link-time stand-ins for one CUDA library, which find the real one when a function of it is called for the first time. So a
// program linked with them starts on any machine, whether it has the library or not.
//
// kernels/toolchain.sh compiles this once a library, with VZ_SONAME, the library's file name, and VZ_NAMES, a file
// of lines NAME(function). x86-64 only: a jump keeps all arguments where they are, so no signature is needed.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// What a stand-in jumps to, once it is known.
struct entry {
    void *address;
    const char *name;
};

// Finds entry->name in the library. vecaz has looked for the library before anything calls here, so what is missing
// is a function that this version of the library does not have.
__attribute__((used)) static void *resolve(struct entry *entry) {
    void *library = dlopen(VZ_SONAME, RTLD_NOW | RTLD_GLOBAL);
    void *address = library ? dlsym(library, entry->name) : 0;
    if (!address) {
        fprintf(stderr, "error: %s\n", dlerror());
        exit(1);
    }
    __atomic_store_n(&entry->address, address, __ATOMIC_RELEASE);
    return address;
}

// Entered with the entry in r11 and the caller's arguments in place; saves every register that may hold one.
__attribute__((naked, used)) static void first_call(void) {
    __asm__("pushq %rbp\n movq %rsp, %rbp\n"
            "pushq %rdi\n pushq %rsi\n pushq %rdx\n pushq %rcx\n pushq %r8\n pushq %r9\n pushq %rax\n pushq %r11\n"
            "subq $128, %rsp\n"
            "movups %xmm0, (%rsp)\n movups %xmm1, 16(%rsp)\n movups %xmm2, 32(%rsp)\n movups %xmm3, 48(%rsp)\n"
            "movups %xmm4, 64(%rsp)\n movups %xmm5, 80(%rsp)\n movups %xmm6, 96(%rsp)\n movups %xmm7, 112(%rsp)\n"
            "movq %r11, %rdi\n call resolve\n movq %rax, %r10\n"
            "movups (%rsp), %xmm0\n movups 16(%rsp), %xmm1\n movups 32(%rsp), %xmm2\n movups 48(%rsp), %xmm3\n"
            "movups 64(%rsp), %xmm4\n movups 80(%rsp), %xmm5\n movups 96(%rsp), %xmm6\n movups 112(%rsp), %xmm7\n"
            "addq $128, %rsp\n"
            "popq %r11\n popq %rax\n popq %r9\n popq %r8\n popq %rcx\n popq %rdx\n popq %rsi\n popq %rdi\n popq %rbp\n"
            "jmp *%r10\n");
}

#define NAME(function)                                                                    \
    __attribute__((used)) static struct entry entry_##function = {0, #function};          \
    __attribute__((naked)) void function(void) {                                          \
        __asm__("leaq entry_" #function "(%rip), %r11\n movq (%r11), %r10\n"              \
                "testq %r10, %r10\n je first_call\n jmp *%r10\n");                        \
    }
#include VZ_NAMES
