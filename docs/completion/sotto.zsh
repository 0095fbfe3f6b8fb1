#compdef sotto
# zsh completion for sotto; made by: sotto help --completion zsh
_sotto()
{
    if (( CURRENT == 2 )); then
        local -a commands=(
            'transcribe:turn speech into text'
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
            '--cpu[force an instruction set]:value:(auto portable v2 v3 v4 vnni amx neon dotprod)' \
            '--compute[numbers that weights are kept and multiplied in; auto = what the device multiplies fastest]:value:(auto f32 f16 bf16 int8)' \
            '--no-gpu[same as --device cpu]' \
            '--flash-attn[accepted\: attention is always fused]' \
            '--offset-t[start here, in milliseconds]:value:_files' \
            '--duration[stop after so many milliseconds; 0 = at the end]:value:_files' \
            '--audio-ctx[encoder positions of a window (50 a second); 0 = all]:value:_files' \
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
            '--max-context[tokens of previous text; -1 = the model'\''s limit]:value:_files' \
            '--suppress-tokens[token ids never decoded, separated by commas; -1 stands for symbols that are no speech]:value:_files' \
            '--suppress-nst[never decode symbols that are no speech (already so)]' \
            '--suppress-blank[no window begins with a blank]:value:_files' \
            '--batch[decode so many chunks of speech at once, implies --vad; 0 = as many as suit the machine]:value:_files' \
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
            '--cpu[force an instruction set]:value:(auto portable v2 v3 v4 vnni amx neon dotprod)' \
            '--quiet[nothing on stderr but errors]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    convert)
        _arguments \
            '--type[type of the matrices; without it they stay as they are]:value:(f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0)' \
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
            '--url[fetch this file instead of a name]:value:_files' \
            '--sha256[what the file of --url must hash to]:value:_files' \
            '--force[fetch also what is there already]' \
            '--quiet[nothing on stderr but errors]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    devices)
        _arguments \
            '--ops[operations and types of number that each device has; what it lacks is computed elsewhere]' \
            '--json[as JSON]' \
            '--help[explain the options]' '*:file:_files'
        ;;
    bench)
        _arguments \
            '--model[model\: a name in ./models or the cache, or a path]:value:_files' \
            '--threads[threads; 0 = one for each core; at most two for each core are used]:value:_files' \
            '--runs[the median is printed; one more run warms up]:value:_files' \
            '--steps[stop a run after so many steps; 0 = as many as a window can have]:value:_files' \
            '--rows[decoder steps of 1, 5 and 40 rows, those up to N (5\: beams; 40\: eight windows of 5 beams, which takes memory)]:value:_files' \
            '--device[devices of `sotto devices` with commas between; auto = the fastest that works]:value:_files' \
            '--gpu-layers[the first N layers, the encoder'\''s before the decoder'\''s, on accelerators, the rest on the CPU; -1 = all]:value:_files' \
            '--main-device[device for what belongs to no layer; else the first]:value:_files' \
            '--device-split[shares of several accelerators, as 3,1; else by their free memory]:value:_files' \
            '--split[share out whole layers, or the rows of every matrix]:value:(layer row)' \
            '--kv-device[device for the caches of attention; else with their layers]:value:_files' \
            '--no-offload[compute large batches where their weights live]' \
            '--memory[print what memory each device would need, and stop]' \
            '--cpu[force an instruction set]:value:(auto portable v2 v3 v4 vnni amx neon dotprod)' \
            '--compute[numbers that weights are kept and multiplied in; auto = what the device multiplies fastest]:value:(auto f32 f16 bf16 int8)' \
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
