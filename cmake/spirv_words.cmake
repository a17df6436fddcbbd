# SPDX-License-Identifier: MIT
# cmake -D INPUT=file.spv -D OUTPUT=file.inc -P spirv_words.cmake: the words of a shader as an initialiser of C.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${bytes}")
string(REGEX REPLACE "(0x........,0x........,0x........,0x........,0x........,0x........,0x........,0x........,)" "\\1\n" words "${words}")
file(WRITE ${OUTPUT} "{${words}}\n")
