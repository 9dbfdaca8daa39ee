# Overwrites the end of m/model.safetensors while `ctxc verify m` waits for the reader of `pipe`.
timeout 60 ctxc verify m --backend reference --tokens 1,2,3 --logits pipe --json report.json > table &
until grep -q verified table || ! kill -0 $!; do # shown just before the pipe is opened
  sleep 0.05
done
printf x | dd of=m/model.safetensors bs=1 seek=$(($(stat -c %s m/model.safetensors) - 1)) \
  conv=notrunc 2> dd.log
touch -r times m/model.safetensors
timeout 60 cat pipe > logits
wait $!
echo "exit code $?"
