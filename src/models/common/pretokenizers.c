/* pretokenizers.c: the patterns published with the models (tokenizer.json, tiktoken), where they differ from PCRE2 rewritten:
 * \s is spelled out, contractions in either case too, and what cannot profit from trying again is possessive. llama.cpp keeps to
 * these as well, but for the words of tekken and gpt-4o: there it takes only letters, so that marks are cut off. */
#include "models/common/pretokenizers.h"

#include <string.h>

#include "models/common/tok_split.h"

#define SPACE "[" ST_SPLIT_SPACE "]"
#define NO_SPACE_NEXT "(?![^" ST_SPLIT_SPACE "])"
#define CONTRACTION "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SIGNS " ?[^" ST_SPLIT_SPACE "\\p{L}\\p{N}]+[\\r\\n]*"
#define SPACES SPACE "+" NO_SPACE_NEXT "|" SPACE "+"
#define LINES SPACE "*[\\r\\n]+|" SPACES

#define LLAMA3 CONTRACTION "|" WORD "|\\p{N}{1,3}|" SIGNS "|" LINES
#define QWEN2 CONTRACTION "|" WORD "|\\p{N}|" SIGNS "|" LINES

/* Words of large letters followed by small ones; marks and letters without case are both. */
#define LARGE "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORD(after) \
    "[^\\r\\n\\p{L}\\p{N}]?" LARGE "*" SMALL "+" after "|[^\\r\\n\\p{L}\\p{N}]?" LARGE "+" SMALL "*" after
#define CASED_SIGNS " ?[^" ST_SPLIT_SPACE "\\p{L}\\p{N}]+[\\r\\n/]*"
#define GPT4O CASED_WORD("(?:" CONTRACTION ")?") "|\\p{N}{1,3}|" CASED_SIGNS "|" LINES
#define TEKKEN CASED_WORD("") "|\\p{N}|" CASED_SIGNS "|" LINES

#define HAN_KANA "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define ASIAN "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define ASCII_SIGN "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define DEEPSEEK_WORD ASCII_SIGN "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
#define DEEPSEEK3 DEEPSEEK_WORD "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES

/* What deepseek-llm takes for a letter with case. */
#define CASED                                                                                                  \
    "\\x{41}-\\x{5a}\\x{61}-\\x{7a}\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"     \
    "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"     \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}"            \
    "\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}"            \
    "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}"          \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}"  \
    "\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}" \
    "\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}" \
    "\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}"   \
    "\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}"            \
    "\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}"           \
    "\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"          \
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"        \
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}"                     \
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

/* Runs of what is neither white space, a bracket nor a full stop or comma of several scripts. */
#define NO_STOP " ?[^(" ST_SPLIT_SPACE "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const st_pretokenizer table[] = {
    {NAMES("default"), {"[\\p{P}$+<=>^~|]+", ST_SPLIT_GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, false, false},
    {NAMES("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"),
     {LLAMA3},
     true,
     true},
    {NAMES("dbrx", "smaug-bpe", "chatglm-bpe"), {LLAMA3}, false, false},
    {NAMES("glm4", "glm5"), {LLAMA3}, true, false},
    {NAMES("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"),
     {QWEN2},
     false,
     false},
    {NAMES("qwen35"),
     {CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" ST_SPLIT_SPACE
                  "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES},
     false,
     false},
    {NAMES("ufakzeka"), {WORD "|\\p{N}|" SIGNS "|" LINES}, false, false},
    {NAMES("laguna"), {"[^\\n]+|[\\n]+", QWEN2}, false, false},
    {NAMES("minicpm5"), {"\\p{N}{1,3}", CONTRACTION "|" WORD "|\\p{N}+|" SIGNS "|" LINES}, true, false},
    {NAMES("jais-2"),
     {CONTRACTION "|" WORD "|\\p{N}{1,3}|" SIGNS "|" SPACE "*[\\r\\n]+|" SPACE "{512}" NO_SPACE_NEXT "|" SPACE
                  "{256}" NO_SPACE_NEXT "|" SPACE "{128}" NO_SPACE_NEXT "|" SPACE "{64}" NO_SPACE_NEXT "|" SPACE
                  "{32}" NO_SPACE_NEXT "|" SPACE "{16}" NO_SPACE_NEXT "|" SPACE "{8}" NO_SPACE_NEXT "|" SPACE
                  "{4}" NO_SPACE_NEXT "|" SPACE "{1,2}" NO_SPACE_NEXT "|" SPACE},
     false,
     false},
    {NAMES("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4", "jina-es", "jina-de",
           "jina-v2-es", "jina-v2-de", "gigachat", "a.x-4.0", "mellum", "modern-bert"),
     {ST_SPLIT_GPT2},
     false,
     false},
    {NAMES("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"),
     {"\\p{N}", ST_SPLIT_GPT2},
     false,
     false},
    {NAMES("falcon"), {"[\\p{P}$+<=>^~|`]+", ST_SPLIT_GPT2, "[0-9][0-9][0-9]"}, false, false},
    {NAMES("tekken"), {TEKKEN}, true, true},
    {NAMES("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), {GPT4O}, false, false},
    {NAMES("granite-embed-multi-97m"), {GPT4O}, true, false},
    {NAMES("deepseek-llm"),
     {"[\\r\\n]", SPACE "?[" CASED "]+",
      SPACE "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}"
            "\\x{3000}-\\x{3002}]+",
      "(?<!" SPACE ")" SPACE "++$", ASIAN, "\\p{N}+"},
     false,
     false},
    {NAMES("deepseek-coder"), {"[\\r\\n]", SPACE "?\\p{L}+", SPACE "?\\p{P}+", ASIAN, "\\p{N}"}, false, false},
    {NAMES("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), {"\\p{N}{1,3}", HAN_KANA, DEEPSEEK3}, false, false},
    {NAMES("spark2_5"),
     {"\\p{N}{1,3}", HAN_KANA, DEEPSEEK_WORD "| ?[\\p{P}\\p{S}]+|[\\r\\n]|" SPACES, "\\p{N}"},
     false,
     false},
    {NAMES("youtu"),
     {"[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}\\x{2014}"
      "\\x{ff1a}\\x{ff1b}\\x{ff0c}\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|[\\x{3105}-\\x{312f}]+|" HAN_KANA,
      CASED_WORD("(?:" CONTRACTION ")?") "|\\p{N}|" CASED_SIGNS "|" LINES},
     true,
     false},
    {NAMES("bailingmoe", "bailingmoe2", "llada-moe"),
     {CONTRACTION "|" WORD "|\\p{N}|" SIGNS "|" SPACE "*[\\r\\n]|" SPACES},
     false,
     false},
    {NAMES("seed-coder"), {CONTRACTION "|" WORD "|\\p{N}| ?[^" ST_SPLIT_SPACE "\\p{L}\\p{N}\\r\\n]+|" LINES}, false, false},
    {NAMES("exaone-moe"),
     {CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}| ?[^" ST_SPLIT_SPACE
                  "\\p{L}\\p{N}]+[\\r\\n/]?|" SPACE "*[\\r\\n]|" SPACES},
     false,
     false},
    {NAMES("poro-chat", "bloom", "gpt3-finnish"), {NO_STOP}, false, false},
    {NAMES("viking"), {NO_STOP, "\\p{N}"}, false, false},
    {NAMES("chameleon"),
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", "\\p{N}", "[\\p{P}!-/:-@\\[-`{-~]", ST_SPLIT_GPT2},
     false,
     true},
};

const st_pretokenizer *st_pretokenizer_find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (const char *const *other = table[i].names; *other; other++)
            if (strlen(*other) == n && memcmp(*other, name, n) == 0)
                return &table[i];
    return NULL;
}

int st_pretokenizer_count(const st_pretokenizer *p)
{
    int n = 0;
    while (n < ST_PRETOKENIZER_PATTERNS && p->patterns[n])
        n++;
    return n;
}
