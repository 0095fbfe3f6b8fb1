#compdef sotto
# zsh completion for sotto; made by: sotto help --completion zsh
_sotto()
{
    if (( CURRENT == 2 )); then
        local -a commands=(
            'transcribe:turn speech into text'
            'generate:write a text that goes on from a prompt'
            'chat:talk with a model'
            'tokenize:turn texts into token ids and back'
            'perplexity:measure how well a model foretells a text'
            'imatrix:find out from a text which columns of a model'\''s matrices matter'
            'vad:print where somebody speaks'
            'convert:convert or quantise models'
            'inspect:print the metadata and tensors of a model file'
            'get:fetch a model or the sample recordings'
            'devices:list what can compute'
            'bench:measure a model on this machine'
            'help:explain the commands'
            'version:print the version'
        )
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
    transcribe)
        _arguments \
            '--model[model\: a name in ./models or the cache, or a path]:value:_files' \
            '--model-dir[look for the model'\''s name here first]:value:_files' \
            '--file[one more input]:value:_files' \
            '--raw[inputs are headerless PCM, as s16le\:16000\:1 (u8 s8 s16le s24le s32le f32le f64le, ..be, alaw, mulaw)]:value:_files' \
            '--language[spoken language as en or english; auto detects it]:value:_files' \
            '--task[translate gives English text]:value:(transcribe translate)' \
            '--translate[same as --task translate]' \
            '--detect-language[print the language and its probability, then stop]' \
            '--format[txt srt vtt lrc csv tsv json json-full, separated by commas; all = txt,vtt,srt,tsv,json]:value:_files' \
            '--output-dir[write DIR/<input'\''s name>.<format>; - is standard output]:value:_files' \
            '--output-file[write BASE.<format> (one input); - is standard output]:value:_files' \
            '--output-txt[same as -f txt]' \
            '--output-srt[same as -f srt]' \
            '--output-vtt[same as -f vtt]' \
            '--output-lrc[same as -f lrc]' \
            '--output-csv[same as -f csv]' \
            '--output-json[same as -f json]' \
            '--output-json-full[same as -f json-full]' \
            '--no-timestamps[print plain text, one line a segment (decoding stays the same)]' \
            '--without-timestamps[ask the model for text only; a segment is then a whole window]' \
            '--threads[threads; 0 = one for each core; at most two for each core are used]:value:_files' \
            '--device[devices of `sotto devices` with commas between; auto = the fastest that works]:value:_files' \
            '--gpu-layers[the first N layers, the encoder'\''s before the decoder'\''s, on accelerators, the rest on the CPU; -1 = all]:value:_files' \
            '--main-device[device for what belongs to no layer; else the first]:value:_files' \
            '--device-split[shares of several accelerators, as 3,1; else by their free memory]:value:_files' \
            '--split[share out whole layers, or the rows of every matrix]:value:(layer row)' \
            '--kv-device[device for the caches of attention; else with their layers]:value:_files' \
            '--no-offload[compute large batches where their weights live]' \
            '--memory[print what memory each device would need, and stop]' \
            '--cpu[force an instruction set]:value:(auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm)' \
            '--compute[numbers that weights are kept and multiplied in; auto = what the device multiplies fastest]:value:(auto f32 f16 bf16 int8)' \
            '--cache-type-k[numbers of the caches of keys; auto = f16, in bf16 bf16, in int8 as is fastest]:value:(auto f16 f32 bf16 q8_0)' \
            '--cache-type-v[numbers of the caches of values; as for keys]:value:(auto f16 f32 bf16 q8_0)' \
            '--no-gpu[same as --device cpu]' \
            '--no-mmap[read the model into memory instead of mapping it]' \
            '--mlock[keep the mapped model in memory while loading]' \
            '--flash-attn[accepted\: attention is always fused]' \
            '--offset-t[start here, in milliseconds]:value:_files' \
            '--duration[stop after so many milliseconds; 0 = at the end]:value:_files' \
            '--audio-ctx[encoder positions of a window (50 a second); 0 = all]:value:_files' \
            '--padding[compute all of the silence that fills windows up, or a part; auto = a part with --batch]:value:(auto whole thin)' \
            '--beam-size[beams at temperature 0; 0 or 1 is greedy]:value:_files' \
            '--best-of[candidates at higher temperatures]:value:_files' \
            '--patience[beam search ends with beam-size * X finished beams]:value:_files' \
            '--length-penalty[exponent of the length penalty; below 0 = divide by the length]:value:_files' \
            '--temperature[first temperature, 0 to 2]:value:_files' \
            '--temperature-inc[step up to 1 when a window fails the thresholds; 0 or 0.01 to 2]:value:_files' \
            '--no-fallback[same as --temperature-inc 0]' \
            '--compression-ratio-threshold[a window fails above (repetition), or off]:value:_files' \
            '--logprob-thold[a window fails below this average log-probability, or off]:value:_files' \
            '--no-speech-thold[a failed window above this probability of no speech is silence, or off]:value:_files' \
            '--max-tokens[longer segments are split, nothing is lost; 0 = no limit; up to 224]:value:_files' \
            '--max-initial-timestamp[a window'\''s first segment begins within so many seconds (0 to 30), or off]:value:_files' \
            '--seed[of sampling at temperatures above 0]:value:_files' \
            '--prompt[text that comes before the recording]:value:_files' \
            '--carry-initial-prompt[the prompt before every window]' \
            '--condition-on-previous-text[let a window know the text before it]:value:_files' \
            '--recover-missed[hear again what a window'\''s text leaves out of the speech]:value:_files' \
            '--max-context[tokens of previous text; -1 = the model'\''s limit]:value:_files' \
            '--suppress-tokens[token ids never decoded, separated by commas; -1 stands for symbols that are no speech]:value:_files' \
            '--suppress-nst[never decode symbols that are no speech (already so)]' \
            '--suppress-blank[no window begins with a blank]:value:_files' \
            '--grammar[the text of each window follows this grammar (it begins with a space)]:value:_files' \
            '--grammar-rule[the rule to begin with]:value:_files' \
            '--grammar-penalty[what tokens that leave the grammar lose from their logits]:value:_files' \
            '--batch[decode so many chunks of speech at once, which do not see each other'\''s text; implies --vad; 0 = as many as suit the machine (1, 4 or 8, by the threads); -1 = with --vad 0, else 1]:value:_files' \
            '--vad[decode only where there is speech, in windows that end in pauses]' \
            '--no-vad[with --batch\: hear everything, cut where it is most silent]' \
            '--vad-model[model that finds speech (sotto get silero-vad)]:value:_files' \
            '--vad-threshold[speech begins where it is as likely as this]:value:_files' \
            '--vad-neg-threshold[and may end where it is less likely than this; off = 0.15 below the threshold]:value:_files' \
            '--vad-min-speech-duration-ms[speech that is not longer is left out]:value:_files' \
            '--vad-min-silence-duration-ms[a pause as long ends a span of speech]:value:_files' \
            '--vad-max-speech-duration-s[longer spans are cut at their longest pause]:value:_files' \
            '--vad-speech-pad-ms[added before and behind each span]:value:_files' \
            '--print-progress[progress as lines when stderr is no terminal]' \
            '--quiet[nothing on stderr but errors]' \
            '--timings[times and memory on stderr]' \
            '--trace[every operation with shape and time on stderr; sched = what runs on which device and what is copied; dot = the graphs for Graphviz on stdout, and nothing else]' \
            '--debug-mode[more messages on stderr]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    generate)
        _arguments \
            '--model[model\: a name in ./models or the cache, or a path of a GGUF file (of a split one the first part)]:value:_files' \
            '--model-dir[look for the model'\''s name here first]:value:_files' \
            '--prompt[the beginning, taken as it is]:value:_files' \
            '--prompt-file[the beginning from a file, without the line break at its end; - = standard input]:value:_files' \
            '--tokens[so many tokens at most; -1 = until the model ends the text or the context is full]:value:_files' \
            '--chat[the prompt is a user'\''s message in the model'\''s chat format (see sotto chat); else it is completed as it is]' \
            '--system[with --chat\: the system message]:value:_files' \
            '--template[with --chat\: the format of the conversation, when the model'\''s own is not known]:value:(chatml llama2 llama3 gemma mistral mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken phi3 phi4 zephyr stablelm-zephyr vicuna deepseek-coder deepseek2 deepseek3 command-r)' \
            '--ctx[tokens that the context holds; 0 = as the model was trained, at most 4096]:value:_files' \
            '--batch[tokens of a prompt that are computed at once]:value:_files' \
            '--cache-type-k[numbers of the cache of keys; auto = f16, for speech as in transcribe]:value:(auto f16 f32 bf16 q8_0)' \
            '--cache-type-v[numbers of the cache of values; as for keys]:value:(auto f16 f32 bf16 q8_0)' \
            '--context-shift[when the context is full, forget the older half of it and go on]' \
            '--keep[tokens of the prompt that are never forgotten; -1 = all; the begin token always is kept]:value:_files' \
            '--seed[same seed, same text; -1 = another one each time, which is told]:value:_files' \
            '--temperature[0 = always the likeliest token]:value:_files' \
            '--top-k[only the N likeliest tokens; 0 = all]:value:_files' \
            '--top-p[only the likeliest that together are so probable; 1 = all]:value:_files' \
            '--min-p[only those at least X times as probable as the likeliest; 0 = all]:value:_files' \
            '--typical[only those of about the expected information, together so probable; 1 = all]:value:_files' \
            '--repeat-penalty[logits of recent tokens are divided by it; 1 = off]:value:_files' \
            '--repeat-last[tokens that penalties look back; 0 = none, -1 = all]:value:_files' \
            '--frequency-penalty[subtracted for each time that a token was used]:value:_files' \
            '--presence-penalty[subtracted once from tokens that were used]:value:_files' \
            '--mirostat[version; it replaces top-k, top-p, min-p and typical]:value:(0 2)' \
            '--mirostat-tau[information that it aims at, in bits]:value:_files' \
            '--mirostat-eta[how fast it learns]:value:_files' \
            '--logit-bias[added to a token'\''s logit, as 15043+1 or 15043-inf; may be repeated]:value:_files' \
            '--grammar[only texts of this grammar; what has no \:\:= is the name of a file]:value:_files' \
            '--grammar-file[the same from a file]:value:_files' \
            '--json-schema[only JSON of this schema]:value:_files' \
            '--stop[end before this text; may be repeated]:value:_files' \
            '--ignore-eos[never choose a token that ends the text]' \
            '--special[show control tokens]' \
            '--no-bos[no begin token before the prompt]' \
            '--echo[print the prompt, too]' \
            '--session[keep the state there\: what the prompt has in common with it is not computed again; without a prompt its text goes on]:value:_files' \
            '--threads[threads; 0 = one for each core; at most two for each core are used]:value:_files' \
            '--device[devices of `sotto devices` with commas between; auto = the fastest that works]:value:_files' \
            '--gpu-layers[the first N layers, the encoder'\''s before the decoder'\''s, on accelerators, the rest on the CPU; -1 = all]:value:_files' \
            '--main-device[device for what belongs to no layer; else the first]:value:_files' \
            '--device-split[shares of several accelerators, as 3,1; else by their free memory]:value:_files' \
            '--split[share out whole layers, or the rows of every matrix]:value:(layer row)' \
            '--kv-device[device for the caches of attention; else with their layers]:value:_files' \
            '--no-offload[compute large batches where their weights live]' \
            '--memory[print what memory each device would need, and stop]' \
            '--cpu[force an instruction set]:value:(auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm)' \
            '--compute[numbers that products are computed in; f32 = weights expanded exactly; auto = what the device prefers]:value:(auto f32 f16 int8)' \
            '--no-gpu[same as --device cpu]' \
            '--no-mmap[read the file into memory instead of mapping it]' \
            '--mlock[keep the mapped file in memory while loading]' \
            '--json[one JSON object at the end instead of the text]' \
            '--logprobs[with --json\: the N likeliest tokens of each place, with the logarithms of their probabilities]:value:_files' \
            '--quiet[nothing on stderr but errors]' \
            '--trace[every operation with shape and time on stderr; sched = what ran on which device and what was copied; dot = the graph of a step for Graphviz on standard output, and no text]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    chat)
        _arguments \
            '--model[model\: a name in ./models or the cache, or a path of a GGUF file (of a split one the first part)]:value:_files' \
            '--model-dir[look for the model'\''s name here first]:value:_files' \
            '--system[the system message]:value:_files' \
            '--template[the format of the conversation, when the model'\''s own is not known]:value:(chatml llama2 llama3 gemma mistral mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken phi3 phi4 zephyr stablelm-zephyr vicuna deepseek-coder deepseek2 deepseek3 command-r)' \
            '--load[go on with a conversation that /save wrote]:value:_files' \
            '--tokens[so many tokens an answer at most; -1 = until the model ends it or the context is full]:value:_files' \
            '--ctx[tokens that the context holds; 0 = as the model was trained, at most 4096]:value:_files' \
            '--batch[tokens of a prompt that are computed at once]:value:_files' \
            '--cache-type-k[numbers of the cache of keys; auto = f16, for speech as in transcribe]:value:(auto f16 f32 bf16 q8_0)' \
            '--cache-type-v[numbers of the cache of values; as for keys]:value:(auto f16 f32 bf16 q8_0)' \
            '--context-shift[when the context is full, forget the oldest questions and answers instead of stopping]' \
            '--seed[same seed, same text; -1 = another one each time, which is told]:value:_files' \
            '--temperature[0 = always the likeliest token]:value:_files' \
            '--top-k[only the N likeliest tokens; 0 = all]:value:_files' \
            '--top-p[only the likeliest that together are so probable; 1 = all]:value:_files' \
            '--min-p[only those at least X times as probable as the likeliest; 0 = all]:value:_files' \
            '--typical[only those of about the expected information, together so probable; 1 = all]:value:_files' \
            '--repeat-penalty[logits of recent tokens are divided by it; 1 = off]:value:_files' \
            '--repeat-last[tokens that penalties look back; 0 = none, -1 = all]:value:_files' \
            '--frequency-penalty[subtracted for each time that a token was used]:value:_files' \
            '--presence-penalty[subtracted once from tokens that were used]:value:_files' \
            '--mirostat[version; it replaces top-k, top-p, min-p and typical]:value:(0 2)' \
            '--mirostat-tau[information that it aims at, in bits]:value:_files' \
            '--mirostat-eta[how fast it learns]:value:_files' \
            '--logit-bias[added to a token'\''s logit, as 15043+1 or 15043-inf; may be repeated]:value:_files' \
            '--grammar[only texts of this grammar; what has no \:\:= is the name of a file]:value:_files' \
            '--grammar-file[the same from a file]:value:_files' \
            '--json-schema[only JSON of this schema]:value:_files' \
            '--stop[end before this text; may be repeated]:value:_files' \
            '--ignore-eos[never choose a token that ends the text]' \
            '--special[show control tokens]' \
            '--threads[threads; 0 = one for each core; at most two for each core are used]:value:_files' \
            '--device[devices of `sotto devices` with commas between; auto = the fastest that works]:value:_files' \
            '--gpu-layers[the first N layers, the encoder'\''s before the decoder'\''s, on accelerators, the rest on the CPU; -1 = all]:value:_files' \
            '--main-device[device for what belongs to no layer; else the first]:value:_files' \
            '--device-split[shares of several accelerators, as 3,1; else by their free memory]:value:_files' \
            '--split[share out whole layers, or the rows of every matrix]:value:(layer row)' \
            '--kv-device[device for the caches of attention; else with their layers]:value:_files' \
            '--no-offload[compute large batches where their weights live]' \
            '--memory[print what memory each device would need, and stop]' \
            '--cpu[force an instruction set]:value:(auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm)' \
            '--compute[numbers that products are computed in; f32 = weights expanded exactly; auto = what the device prefers]:value:(auto f32 f16 int8)' \
            '--no-gpu[same as --device cpu]' \
            '--no-mmap[read the file into memory instead of mapping it]' \
            '--mlock[keep the mapped file in memory while loading]' \
            '--timings[speed on stderr after each answer]' \
            '--quiet[nothing on stderr but errors]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    tokenize)
        _arguments \
            '--model[model\: a name in ./models or the cache, or a path of a GGUF file (of a split one the first part)]:value:_files' \
            '--model-dir[look for the model'\''s name here first]:value:_files' \
            '--prompt[the text, as the argument]:value:_files' \
            '--file[every byte of a file; - = standard input]:value:_files' \
            '--ids[only the ids, as \[1, 2, 3\]]' \
            '--json[one JSON object\: count, ids, tokens]' \
            '--count[only the number of tokens]' \
            '--no-special[add no begin and end token, also where the model wants them]' \
            '--parse-special[accepted\: texts of control tokens are these tokens anyway]' \
            '--no-parse-special[texts of control tokens are plain text]' \
            '--decode[the other way\: the text of ids, as "\[1, 2, 3\]" or "1 2 3"; - reads them from standard input]:value:_files' \
            '--special[with --decode\: show control tokens]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    perplexity)
        _arguments \
            '--model[model\: a name in ./models or the cache, or a path of a GGUF file (of a split one the first part)]:value:_files' \
            '--model-dir[look for the model'\''s name here first]:value:_files' \
            '--file[the text, without the line break at its end; - = standard input]:value:_files' \
            '--ctx[tokens that the context holds; 0 = as the model was trained, at most 4096]:value:_files' \
            '--batch[tokens of a prompt that are computed at once]:value:_files' \
            '--cache-type-k[numbers of the cache of keys; auto = f16, for speech as in transcribe]:value:(auto f16 f32 bf16 q8_0)' \
            '--cache-type-v[numbers of the cache of values; as for keys]:value:(auto f16 f32 bf16 q8_0)' \
            '--chunks[only the first N chunks; -1 = all]:value:_files' \
            '--stride[chunks begin every N tokens, and the last N of each are scored; 0 = chunks side by side]:value:_files' \
            '--threads[threads; 0 = one for each core; at most two for each core are used]:value:_files' \
            '--device[devices of `sotto devices` with commas between; auto = the fastest that works]:value:_files' \
            '--gpu-layers[the first N layers, the encoder'\''s before the decoder'\''s, on accelerators, the rest on the CPU; -1 = all]:value:_files' \
            '--main-device[device for what belongs to no layer; else the first]:value:_files' \
            '--device-split[shares of several accelerators, as 3,1; else by their free memory]:value:_files' \
            '--split[share out whole layers, or the rows of every matrix]:value:(layer row)' \
            '--kv-device[device for the caches of attention; else with their layers]:value:_files' \
            '--no-offload[compute large batches where their weights live]' \
            '--memory[print what memory each device would need, and stop]' \
            '--cpu[force an instruction set]:value:(auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm)' \
            '--compute[numbers that products are computed in; f32 = weights expanded exactly; auto = what the device prefers]:value:(auto f32 f16 int8)' \
            '--no-gpu[same as --device cpu]' \
            '--no-mmap[read the file into memory instead of mapping it]' \
            '--mlock[keep the mapped file in memory while loading]' \
            '--json[as JSON]' \
            '--quiet[nothing on stderr but errors]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    imatrix)
        _arguments \
            '--model[model\: a name in ./models or the cache, or a path of a GGUF file (of a split one the first part)]:value:_files' \
            '--model-dir[look for the model'\''s name here first]:value:_files' \
            '--file[the text, without the line break at its end; - = standard input]:value:_files' \
            '--output[what is written]:value:_files' \
            '--in[begin with the sums of this one]:value:_files' \
            '--ctx[tokens that the context holds; 0 = as the model was trained, at most 4096]:value:_files' \
            '--batch[tokens of a prompt that are computed at once]:value:_files' \
            '--cache-type-k[numbers of the cache of keys; auto = f16, for speech as in transcribe]:value:(auto f16 f32 bf16 q8_0)' \
            '--cache-type-v[numbers of the cache of values; as for keys]:value:(auto f16 f32 bf16 q8_0)' \
            '--chunks[only the first N chunks; -1 = all]:value:_files' \
            '--threads[threads; 0 = one for each core; at most two for each core are used]:value:_files' \
            '--device[devices of `sotto devices` with commas between; auto = the fastest that works]:value:_files' \
            '--gpu-layers[the first N layers, the encoder'\''s before the decoder'\''s, on accelerators, the rest on the CPU; -1 = all]:value:_files' \
            '--main-device[device for what belongs to no layer; else the first]:value:_files' \
            '--device-split[shares of several accelerators, as 3,1; else by their free memory]:value:_files' \
            '--split[share out whole layers, or the rows of every matrix]:value:(layer row)' \
            '--kv-device[device for the caches of attention; else with their layers]:value:_files' \
            '--no-offload[compute large batches where their weights live]' \
            '--memory[print what memory each device would need, and stop]' \
            '--cpu[force an instruction set]:value:(auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm)' \
            '--compute[numbers that products are computed in; f32 = weights expanded exactly; auto = what the device prefers]:value:(auto f32 f16 int8)' \
            '--no-gpu[same as --device cpu]' \
            '--no-mmap[read the file into memory instead of mapping it]' \
            '--mlock[keep the mapped file in memory while loading]' \
            '--force[write over an existing file]' \
            '--quiet[nothing on stderr but errors]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    vad)
        _arguments \
            '--vad-model[model that finds speech (sotto get silero-vad)]:value:_files' \
            '--vad-threshold[speech begins where it is as likely as this]:value:_files' \
            '--vad-neg-threshold[and may end where it is less likely than this; off = 0.15 below the threshold]:value:_files' \
            '--vad-min-speech-duration-ms[speech that is not longer is left out]:value:_files' \
            '--vad-min-silence-duration-ms[a pause as long ends a span of speech]:value:_files' \
            '--vad-max-speech-duration-s[longer spans are cut at their longest pause]:value:_files' \
            '--vad-speech-pad-ms[added before and behind each span]:value:_files' \
            '--model-dir[look for the model'\''s name here first]:value:_files' \
            '--file[one more input]:value:_files' \
            '--raw[inputs are headerless PCM, as for sotto transcribe]:value:_files' \
            '--format[labels can be imported by Audacity\: start and end in seconds]:value:(txt json labels)' \
            '--probabilities[in json also how likely speech is in each 32 ms]' \
            '--cpu[force an instruction set]:value:(auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm)' \
            '--quiet[nothing on stderr but errors]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    convert)
        _arguments \
            '--type[type of the matrices; without it they stay as they are]:value:(f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl q2_k q3_k q4_k q5_k q6_k q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m q5_k_s q5_k_m)' \
            '--imatrix[importance matrix of `sotto imatrix` or llama-imatrix (GGUF)\: what matters gets the smaller errors]:value:_files' \
            '--output-type[of the output matrix instead]:value:(f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl q2_k q3_k q4_k q5_k q6_k)' \
            '--token-embedding-type[of the token embedding instead]:value:(f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl q2_k q3_k q4_k q5_k q6_k)' \
            '--pure[no mix\: every matrix in the type'\''s main one]' \
            '--dry-run[print the type and size that every tensor would get, write nothing]' \
            '--threads[0 = one a core]:value:_files' \
            '--format[instead of by OUT'\''s ending (.gguf, else ggml)]:value:(ggml gguf)' \
            '--force[write over an existing file, and convert what is quantised already]' \
            '--quiet[nothing on stderr but errors]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    inspect)
        _arguments \
            '--json[as JSON (arrays in full)]' \
            '--no-tensors[metadata only]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    get)
        _arguments \
            '--list[print the names that can be fetched]' \
            '--output[put it below DIR instead of ./models (inside a checkout) or the user'\''s cache]:value:_files' \
            '--url[fetch this file instead of a name, also without --sha256]:value:_files' \
            '--sha256[what the file of a URL must hash to]:value:_files' \
            '--max-size[refuse a file of a URL that is longer]:value:_files' \
            '--force[fetch also what is there already]' \
            '--quiet[nothing on stderr but errors]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    devices)
        _arguments \
            '--ops[operations and types of number that each device has; what it lacks is computed elsewhere]' \
            '--try[try each accelerator with every operation and type of number that it has; the first time kernels are compiled]' \
            '--json[as JSON]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    bench)
        _arguments \
            '--model[model\: a name in ./models or the cache, or a path]:value:_files' \
            '--threads[threads; 0 = one for each core; at most two for each core are used]:value:_files' \
            '--runs[speech\: the median of 3 is printed, text\: mean and deviation of 5; one more run warms up]:value:_files' \
            '--prompt[text\: prompts of so many tokens, as 128,512; 0 = none]:value:_files' \
            '--generate[text\: so many tokens generated, as 32,128; 0 = none]:value:_files' \
            '--depth[text\: after so many tokens that are in the context already]:value:_files' \
            '--batch[tokens of a prompt that are computed at once]:value:_files' \
            '--cache-type-k[numbers of the cache of keys; auto = f16, for speech as in transcribe]:value:(auto f16 f32 bf16 q8_0)' \
            '--cache-type-v[numbers of the cache of values; as for keys]:value:(auto f16 f32 bf16 q8_0)' \
            '--steps[speech\: stop a run after so many steps; 0 = as many as a window can have]:value:_files' \
            '--rows[speech\: decoder steps of 1, 5 and 40 rows, those up to N (5\: beams; 40\: eight windows of 5 beams, which takes memory)]:value:_files' \
            '--device[devices of `sotto devices` with commas between; auto = the fastest that works]:value:_files' \
            '--gpu-layers[the first N layers, the encoder'\''s before the decoder'\''s, on accelerators, the rest on the CPU; -1 = all]:value:_files' \
            '--main-device[device for what belongs to no layer; else the first]:value:_files' \
            '--device-split[shares of several accelerators, as 3,1; else by their free memory]:value:_files' \
            '--split[share out whole layers, or the rows of every matrix]:value:(layer row)' \
            '--kv-device[device for the caches of attention; else with their layers]:value:_files' \
            '--no-offload[compute large batches where their weights live]' \
            '--memory[print what memory each device would need, and stop]' \
            '--cpu[force an instruction set]:value:(auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm)' \
            '--compute[numbers that weights are kept and multiplied in; auto = what the device multiplies fastest]:value:(auto f32 f16 bf16 int8)' \
            '--no-mmap[read the file into memory instead of mapping it]' \
            '--mlock[keep the mapped file in memory while loading]' \
            '--matmul[no model\: products of every type of number with the shapes of every size of model]' \
            '--memcpy[no model\: reading and copying memory, by size]' \
            '--json[as JSON]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    help)
        _arguments \
            '--man[print the manual page (troff)]' \
            '--completion[print a completion script for the shell]:value:(bash zsh fish)' \
            '--help[explain the options]' '*:file:_files'
        ;;
    version)
        _arguments \
            '--help[explain the options]' '*:file:_files'
        ;;
    esac
}
_sotto "$@"
