# SPDX-License-Identifier: Apache-2.0
# What the compiler expects of a C library, and the unwinder's names that the precompiled core
# mentions and a program that aborts on panic never calls.

.section .text.runtime, "ax", @progbits
.globl memmove
memmove:
  mov rax, rdi
  sub rax, rsi
  cmp rax, rdx
  jb 5f                            # the destination begins within the source: backwards
.globl memcpy
memcpy:
  mov rax, rdi
  cmp rdx, 16
  jb 3f
  cmp rdx, 32
  ja 1f
  movups xmm0, [rsi]               # 16 to 32 bytes: two overlapping moves
  movups xmm1, [rsi + rdx - 16]
  movups [rdi], xmm0
  movups [rdi + rdx - 16], xmm1
  ret
1:
  cmp rdx, 2048
  jae 4f
  movups xmm2, [rsi + rdx - 32]    # the end, stored last
  movups xmm3, [rsi + rdx - 16]
  lea r8, [rdi + rdx - 32]
2:
  movups xmm0, [rsi]
  movups xmm1, [rsi + 16]
  movups [rdi], xmm0
  movups [rdi + 16], xmm1
  add rsi, 32
  add rdi, 32
  cmp rdi, r8
  jb 2b
  movups [r8], xmm2
  movups [r8 + 16], xmm3
  ret
3:
  cmp edx, 8
  jae 31f
  cmp edx, 4
  jae 32f
  test edx, edx
  je 33f
  movzx ecx, byte ptr [rsi]        # 1 to 3 bytes: first, middle, last
  mov r8d, edx
  shr r8d, 1
  movzx r9d, byte ptr [rsi + r8]
  movzx r10d, byte ptr [rsi + rdx - 1]
  mov [rdi], cl
  mov [rdi + r8], r9b
  mov [rdi + rdx - 1], r10b
33:
  ret
31:
  mov rcx, [rsi]
  mov r8, [rsi + rdx - 8]
  mov [rdi], rcx
  mov [rdi + rdx - 8], r8
  ret
32:
  mov ecx, [rsi]
  mov r8d, [rsi + rdx - 4]
  mov [rdi], ecx
  mov [rdi + rdx - 4], r8d
  ret
4:
  mov rcx, rdx
  rep movsb
  ret
5:
  mov rax, rdi
6:
  cmp rdx, 8
  jb 7f
  mov rcx, [rsi + rdx - 8]
  mov [rdi + rdx - 8], rcx
  sub rdx, 8
  jmp 6b
7:
  test rdx, rdx
  je 8f
  mov cl, [rsi + rdx - 1]
  mov [rdi + rdx - 1], cl
  dec rdx
  jmp 7b
8:
  ret

.globl memset
memset:
  mov r9, rdi
  movzx eax, sil
  mov rcx, 0x0101010101010101
  imul rax, rcx
  cmp rdx, 8
  jb 3f
  cmp rdx, 512
  jae 2f
  mov [rdi + rdx - 8], rax
1:
  mov [rdi], rax
  add rdi, 8
  sub rdx, 8
  cmp rdx, 8
  jae 1b
  mov rax, r9
  ret
2:
  mov rcx, rdx
  rep stosb
  mov rax, r9
  ret
3:
  test rdx, rdx
  je 4f
  mov [rdi], al
  inc rdi
  dec rdx
  jmp 3b
4:
  mov rax, r9
  ret

.globl memcmp
.globl bcmp
memcmp:
bcmp:
  xor ecx, ecx
1:
  lea r8, [rcx + 8]
  cmp r8, rdx
  ja 2f
  mov rax, [rdi + rcx]
  cmp rax, [rsi + rcx]
  jne 2f
  mov rcx, r8
  jmp 1b
2:
  cmp rcx, rdx
  jae 3f
  movzx eax, byte ptr [rdi + rcx]
  movzx r8d, byte ptr [rsi + rcx]
  sub eax, r8d
  jne 4f
  inc rcx
  jmp 2b
3:
  xor eax, eax
4:
  ret

.globl strlen
strlen:
  xor eax, eax
1:
  cmp byte ptr [rdi + rax], 0
  je 2f
  inc rax
  jmp 1b
2:
  ret

.globl rust_eh_personality
rust_eh_personality:
.globl _Unwind_Resume
_Unwind_Resume:
  ud2
