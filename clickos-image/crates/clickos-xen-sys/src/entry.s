# SPDX-License-Identifier: Apache-2.0
# What Xen's domain builder looks for, and the first instructions of a guest: PV in long mode with
# the builder's page tables, PVH in 32-bit mode without paging. Notes: xen/include/public/elfnote.h.

.macro NOTE_TEXT type, text
  .align 4
  .long 4, 8f - 7f, \type
  .asciz "Xen"
7: .asciz "\text"
8: .align 4
.endm
.macro NOTE_WORD type, value
  .align 4
  .long 4, 8, \type
  .asciz "Xen"
  .quad \value
.endm

.section .note.Xen, "a", @note
  NOTE_TEXT 6, "clickos"           # GUEST_OS
  NOTE_TEXT 8, "generic"           # LOADER
  NOTE_TEXT 5, "xen-3.0"           # XEN_VERSION
  NOTE_WORD 3, 0                   # VIRT_BASE: virtual is pseudo-physical
  NOTE_WORD 1, xen_pv_entry        # ENTRY
  NOTE_WORD 2, xen_hypercall_page  # HYPERCALL_PAGE
  NOTE_WORD 18, xen_pvh_entry      # PHYS32_ENTRY

.section .text.entry, "ax", @progbits
.globl xen_pv_entry
xen_pv_entry:                      # rsi: start_info
  cld
  lea rsp, [rip + xen_stack_top]
  xor edi, edi
  call xen_boot
  ud2

.balign 4096
.globl xen_hypercall_page
xen_hypercall_page:                # 32 bytes a call, filled in by Xen
  .skip 4096, 0x90

.code32
.globl xen_pvh_entry
xen_pvh_entry:                     # ebx: hvm_start_info; no stack yet
  cld
  mov edi, offset xen_page_directories
  mov eax, 0x83                    # present, writable, 2 MiB: 0 to 4 GiB one to one
  mov ecx, 2048
2:
  mov [edi], eax
  mov dword ptr [edi + 4], 0
  add eax, 0x200000
  add edi, 8
  dec ecx
  jnz 2b
  mov edi, offset xen_pdpt
  mov eax, offset xen_page_directories
  or eax, 3
  mov ecx, 4
3:
  mov [edi], eax
  add eax, 4096
  add edi, 8
  dec ecx
  jnz 3b
  mov eax, offset xen_pdpt
  or eax, 3
  mov [xen_pml4], eax
  mov eax, offset xen_pml4
  mov cr3, eax
  mov eax, 0x620                   # PAE, OSFXSR, OSXMMEXCPT
  mov cr4, eax
  mov ecx, 0xc0000080              # EFER
  rdmsr
  or eax, 0x100                    # long mode
  wrmsr
  mov eax, 0x80010013              # PG, WP, ET, MP, PE
  mov cr0, eax
  lgdt [xen_gdt_pointer]
  mov esp, offset xen_stack_top
  push 8
  mov eax, offset xen_pvh_long_mode
  push eax
  retf
.code64
xen_pvh_long_mode:
  mov eax, 16
  mov ds, eax
  mov es, eax
  mov ss, eax
  lea rsp, [rip + xen_stack_top]
  mov edi, 1
  mov esi, ebx
  call xen_boot
  ud2

# Exceptions end the guest, so the stubs save nothing: vector, error code (0 where the processor
# gives none) and the processor's frame are the `Frame` that `xen_trap` gets.
.macro STUB vector, has_error
xen_pv_trap_\vector:
  add rsp, 16                      # Xen's copies of rcx and r11
xen_pvh_trap_\vector:
  .if \has_error == 0
  push 0
  .endif
  push \vector
  jmp xen_trap_common
.endm
.irp vector, 0, 1, 3, 4, 5, 6, 7, 9, 15, 16, 18, 19
  STUB \vector, 0
.endr
.irp vector, 8, 10, 11, 12, 13, 14, 17
  STUB \vector, 1
.endr
# `xl trigger NAME nmi`: counted, and the guest goes on. Xen drops it for a PV guest, which names no
# stub, since Xen would write below the stack pointer, where compiled code keeps values.
xen_pvh_trap_2:
  inc qword ptr [rip + xen_nmi_count]
  iretq
xen_trap_common:
  mov rdi, rsp
  and rsp, -16
  call xen_trap
  ud2

.section .rodata.xen, "a", @progbits
.balign 8
.globl xen_pv_traps
xen_pv_traps:
.irp vector, 0, 1
  .quad xen_pv_trap_\vector
.endr
  .quad 0
.irp vector, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
  .quad xen_pv_trap_\vector
.endr
.globl xen_pvh_traps
xen_pvh_traps:
.irp vector, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
  .quad xen_pvh_trap_\vector
.endr

.section .data.xen, "aw", @progbits
.balign 8
.globl xen_gdt
xen_gdt:                           # null, code, data, and two words for the task state segment
  .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0, 0
xen_gdt_pointer:
  .word 39
  .long xen_gdt
  .long 0

.section .bss.xen, "aw", @nobits
.balign 4096
xen_pml4: .skip 4096
xen_pdpt: .skip 4096
.globl xen_page_directories
xen_page_directories: .skip 16384
.globl xen_small_pages
xen_small_pages: .skip 12288
.globl xen_shared_info
xen_shared_info: .skip 4096
.globl xen_stack_guard
xen_stack_guard: .skip 4096
  .skip 131072
xen_stack_top:
  .skip 16384                      # exceptions have a stack of their own
.globl xen_trap_stack_top
xen_trap_stack_top:
  .skip 256                        # and so do NMIs, which may come during an exception
.globl xen_nmi_stack_top
xen_nmi_stack_top:
