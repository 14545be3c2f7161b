/* SPDX-License-Identifier: BSD-2-Clause */
/* A 32-bit process without any library, for the message that such targets get: says "ready", waits to be killed. */
	.globl _start
	.text
_start:
	movl $4, %eax /* write */
	movl $1, %ebx
	movl $ready, %ecx
	movl $6, %edx
	int $0x80
1:	movl $29, %eax /* pause */
	int $0x80
	jmp 1b
	.section .rodata
ready:
	.ascii "ready\n"
	.section .note.GNU-stack, "", @progbits
