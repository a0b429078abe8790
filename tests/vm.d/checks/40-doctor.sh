# `onering doctor` says what this kernel can do and what it lacks.
onering doctor >/tmp/said
has_line /tmp/said "Linux $(uname -r)"
case $(uname -r) in
    6.1.*) lacks='NO_SQARRAY MIN_TIMEOUT RECVSEND_BUNDLE NO_IOWAIT' has='SEND_ZC' ;;
    6.12.*) lacks='NO_IOWAIT' has='NO_SQARRAY MIN_TIMEOUT RECVSEND_BUNDLE SEND_ZC' ;;
    *) skip "nobody has written down what $(uname -r) lacks" ;;
esac
grep 'does without' /tmp/said >/tmp/lacking
for capability in $lacks; do has_line /tmp/lacking $capability; done
for capability in $has; do
    ! grep $capability /tmp/lacking || fail "$capability is there"
done
has_line /tmp/said 'ok .*kernel TLS .*ChaCha20-Poly1305.*Linux 6.14'
