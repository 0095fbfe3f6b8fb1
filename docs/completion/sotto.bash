# bash completion for sotto; made by: sotto help --completion bash
_sotto()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="transcribe generate chat tokenize perplexity imatrix vad convert inspect get devices bench help version"
    else
        case ${COMP_WORDS[1]}:$prev in
        transcribe:--task) words="transcribe translate" ;;
        transcribe:--split) words="layer row" ;;
        transcribe:--cpu) words="auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm" ;;
        transcribe:--compute) words="auto f32 f16 bf16 int8" ;;
        transcribe:--cache-type-k) words="auto f16 f32 bf16 q8_0" ;;
        transcribe:--cache-type-v) words="auto f16 f32 bf16 q8_0" ;;
        transcribe:--padding) words="auto whole thin" ;;
        transcribe:--trace) words="ops sched dot" ;;
        generate:--template) words="chatml llama2 llama3 gemma mistral mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken phi3 phi4 zephyr stablelm-zephyr vicuna deepseek-coder deepseek2 deepseek3 command-r" ;;
        generate:--cache-type-k) words="auto f16 f32 bf16 q8_0" ;;
        generate:--cache-type-v) words="auto f16 f32 bf16 q8_0" ;;
        generate:--mirostat) words="0 2" ;;
        generate:--split) words="layer row" ;;
        generate:--cpu) words="auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm" ;;
        generate:--compute) words="auto f32 f16 int8" ;;
        generate:--trace) words="ops sched dot" ;;
        chat:--template) words="chatml llama2 llama3 gemma mistral mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken phi3 phi4 zephyr stablelm-zephyr vicuna deepseek-coder deepseek2 deepseek3 command-r" ;;
        chat:--cache-type-k) words="auto f16 f32 bf16 q8_0" ;;
        chat:--cache-type-v) words="auto f16 f32 bf16 q8_0" ;;
        chat:--mirostat) words="0 2" ;;
        chat:--split) words="layer row" ;;
        chat:--cpu) words="auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm" ;;
        chat:--compute) words="auto f32 f16 int8" ;;
        perplexity:--cache-type-k) words="auto f16 f32 bf16 q8_0" ;;
        perplexity:--cache-type-v) words="auto f16 f32 bf16 q8_0" ;;
        perplexity:--split) words="layer row" ;;
        perplexity:--cpu) words="auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm" ;;
        perplexity:--compute) words="auto f32 f16 int8" ;;
        imatrix:--cache-type-k) words="auto f16 f32 bf16 q8_0" ;;
        imatrix:--cache-type-v) words="auto f16 f32 bf16 q8_0" ;;
        imatrix:--split) words="layer row" ;;
        imatrix:--cpu) words="auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm" ;;
        imatrix:--compute) words="auto f32 f16 int8" ;;
        vad:--format) words="txt json labels" ;;
        vad:--cpu) words="auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm" ;;
        convert:--type) words="f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl q2_k q3_k q4_k q5_k q6_k q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m q5_k_s q5_k_m" ;;
        convert:--output-type) words="f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl q2_k q3_k q4_k q5_k q6_k" ;;
        convert:--token-embedding-type) words="f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl q2_k q3_k q4_k q5_k q6_k" ;;
        convert:--format) words="ggml gguf" ;;
        bench:--cache-type-k) words="auto f16 f32 bf16 q8_0" ;;
        bench:--cache-type-v) words="auto f16 f32 bf16 q8_0" ;;
        bench:--split) words="layer row" ;;
        bench:--cpu) words="auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm" ;;
        bench:--compute) words="auto f32 f16 bf16 int8" ;;
        help:--completion) words="bash zsh fish" ;;
        esac
        if [ -z "$words" ] && [ "${cur#-}" != "$cur" ]; then
            case ${COMP_WORDS[1]} in
            transcribe) words="--help --model --model-dir --file --raw --language --task --translate --detect-language --format --output-dir --output-file --output-txt --output-srt --output-vtt --output-lrc --output-csv --output-json --output-json-full --no-timestamps --without-timestamps --threads --device --gpu-layers --main-device --device-split --split --kv-device --no-offload --memory --cpu --compute --cache-type-k --cache-type-v --no-gpu --no-mmap --mlock --flash-attn --offset-t --duration --audio-ctx --padding --beam-size --best-of --patience --length-penalty --temperature --temperature-inc --no-fallback --compression-ratio-threshold --logprob-thold --no-speech-thold --max-tokens --max-initial-timestamp --seed --prompt --carry-initial-prompt --condition-on-previous-text --recover-missed --max-context --suppress-tokens --suppress-nst --suppress-blank --grammar --grammar-rule --grammar-penalty --batch --vad --no-vad --vad-model --vad-threshold --vad-neg-threshold --vad-min-speech-duration-ms --vad-min-silence-duration-ms --vad-max-speech-duration-s --vad-speech-pad-ms --print-progress --quiet --timings --trace --debug-mode" ;;
            generate) words="--help --model --model-dir --prompt --prompt-file --tokens --chat --system --template --ctx --batch --cache-type-k --cache-type-v --context-shift --keep --seed --temperature --top-k --top-p --min-p --typical --repeat-penalty --repeat-last --frequency-penalty --presence-penalty --mirostat --mirostat-tau --mirostat-eta --logit-bias --grammar --grammar-file --json-schema --stop --ignore-eos --special --no-bos --echo --session --threads --device --gpu-layers --main-device --device-split --split --kv-device --no-offload --memory --cpu --compute --no-gpu --no-mmap --mlock --json --logprobs --quiet --trace" ;;
            chat) words="--help --model --model-dir --system --template --load --tokens --ctx --batch --cache-type-k --cache-type-v --context-shift --seed --temperature --top-k --top-p --min-p --typical --repeat-penalty --repeat-last --frequency-penalty --presence-penalty --mirostat --mirostat-tau --mirostat-eta --logit-bias --grammar --grammar-file --json-schema --stop --ignore-eos --special --threads --device --gpu-layers --main-device --device-split --split --kv-device --no-offload --memory --cpu --compute --no-gpu --no-mmap --mlock --timings --quiet" ;;
            tokenize) words="--help --model --model-dir --prompt --file --ids --json --count --no-special --parse-special --no-parse-special --decode --special" ;;
            perplexity) words="--help --model --model-dir --file --ctx --batch --cache-type-k --cache-type-v --chunks --stride --threads --device --gpu-layers --main-device --device-split --split --kv-device --no-offload --memory --cpu --compute --no-gpu --no-mmap --mlock --json --quiet" ;;
            imatrix) words="--help --model --model-dir --file --output --in --ctx --batch --cache-type-k --cache-type-v --chunks --threads --device --gpu-layers --main-device --device-split --split --kv-device --no-offload --memory --cpu --compute --no-gpu --no-mmap --mlock --force --quiet" ;;
            vad) words="--help --vad-model --vad-threshold --vad-neg-threshold --vad-min-speech-duration-ms --vad-min-silence-duration-ms --vad-max-speech-duration-s --vad-speech-pad-ms --model-dir --file --raw --format --probabilities --cpu --quiet" ;;
            convert) words="--help --type --imatrix --output-type --token-embedding-type --pure --dry-run --threads --format --force --quiet" ;;
            inspect) words="--help --json --no-tensors" ;;
            get) words="--help --list --output --url --sha256 --max-size --force --quiet" ;;
            devices) words="--help --ops --try --json" ;;
            bench) words="--help --model --threads --runs --prompt --generate --depth --batch --cache-type-k --cache-type-v --steps --rows --device --gpu-layers --main-device --device-split --split --kv-device --no-offload --memory --cpu --compute --no-mmap --mlock --matmul --memcpy --json" ;;
            help) words="--help --man --completion" ;;
            version) words="--help" ;;
            esac
        fi
    fi
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -o filenames -F _sotto sotto
