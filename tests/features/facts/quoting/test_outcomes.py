"""Which results say that a call failed, in any language; words that deny it, and states of things, are none."""

from __future__ import annotations

import json

import pytest

from reactor_memory.features.facts.quoting.outcomes import has_failed, is_failed
from reactor_memory.models import Message
from reactor_memory.text.opened_results import opened
from tests.features.facts.quoting.reading import calls, lines, one, result


def told(value: object) -> Message:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Message.tool(text, tool_call_id="c1")


@pytest.mark.parametrize(
    "value",
    [
        {"status": "fehlgeschlagen", "meldung": "TAN abgelaufen"},
        {"durum": "başarısız"},
        {"sonuç": "ödeme reddedildi"},
        {"状态": "支付失败"},
        {"状態": "失敗", "理由": "満席"},
        {"상태": "실패"},
        {"trang_thai": "thất bại", "ly_do": "hết hàng"},
        {"status": "błąd", "opis": "brak w magazynie"},
        {"الحالة": "فشل"},
        {"स्थिति": "विफल"},
        {"estado": "rechazado"},
        {"statut": "paiement refusé"},
        {"статус": "отклонено"},
        {"status": "misslyckades"},
        {"fehler": "Konto gesperrt"},
        {"hata": "süre doldu"},
        {"erfolg": False},
        {"成功": False},
        {"conclusion": "timed_out"},
        {"status": "card_declined"},
        {"data": {"status": "failed"}},
        "Błąd: brak miejsc",
        "Lỗi: hết hàng",
        "Zahlungsfehler: Karte abgelaufen",
        "未知错误",
        "pushed nothing\nexit code: 128",
        {"success": 0},
        {"status": "order_not_found"},
        {"estado": "producto no encontrado"},
        {"结果": "订单无效"},
        "没有权限，操作失败",
        "无法连接，操作失败",
        "File not found error: notes.txt",
        "Null pointer exception in main",
        "Zero division error",
        "Exit code 1\nls: x\nls: y\nls: z",
        "exit code: 2\n\n[output truncated]",
        "Kunde nicht gefunden",
        "Giao dịch không thành công",
        "Buchung am 12. Mai abgelehnt",
        "Order no 5 declined",
        "rate_limit_error: Too many requests",
        "PERMISSION_DENIED: Missing permissions",
        "java.lang.NullPointerException: x",
        "handle_error: NameError: x is not defined",
        "Error: handle_error is not defined",
        "Error: set the key first",
        "Error 500 while the page was updated",
        "Failed to fetch the list that was updated",
        "The push was rejected because the tip was updated",
        "Save failed: file was not updated",
        "支付失败，余额不足",
        "create_error: name taken",
        "update_error: locked",
        "parse_error: line 3",
        "Stored procedure error: divide by zero",
        "Deployed version failed health check",
        "Reported error: x",
        "Error(42): bad",
        "failed(3)",
        "Exception('boom')",
        "Error: cancelled",
        "Failed to parse value: null",
        "Zahlung fehlgeschlagen, Karte abgelaufen",
    ],
)
def test_failures_are_told_in_any_language(value: object) -> None:
    assert is_failed(told(value))


@pytest.mark.parametrize(
    "value",
    [
        "No error found in 12 files",
        "Keine Fehler gefunden.",
        "0 Fehler, 3 Warnungen",
        "0 failed, 12 passed",
        "Failed: 0",
        "Aucune erreur détectée",
        "Nenhum erro encontrado",
        "没有错误",
        "エラーはありません",
        "오류가 없습니다",
        "Hata yok",
        "Błąd: brak",
        "The request was not rejected",
        "Fehlerbehebung abgeschlossen",
        "State: Terminated\n  Exit Code: 137\nLimits:\n  memory: 512Mi",
        {"fehler": "keine"},
        {"hata": "yok"},
        {"エラー": "なし"},
        {"status": "nicht abgelehnt"},
        {"name": "Rejected"},
        {"status": "tamam"},
        "The file src/error.py has been updated",
        "Created lib/error.ts",
        "Wrote error.py",
        "handle_error: done",
        "log_error: updated in src/app.py",
        "def raise_error(): added",
        "handleError: renamed",
        "timeout: 30s",
        "update_error: done",
        "create_error: added in src/app.py",
        "on_error: continue",
        "Fixed error: null pointer in login",
        "Exported all failed logins to x.csv",
        "Failed logins: 0",
        "Failed tests: none",
        "エラー: 0件",
        "오류: 0건",
        "错误：0个",
        "Lỗi: không có",
        "找不到错误",
        "Exception approved for invoice 5",
        "Failed order cancelled as requested",
        "Error page updated",
        "Forbidden City tour booked",
        "Failed logins exported to x.csv",
        "Max Failure booked for 12:00",
        "Updated error messages in 3 files",
        "Stiefel bestellt, Lieferung Montag",
        "Trüffel bestellt",
        "Storing 3 files in /data: done",
        "Un fel de mâncare adăugat",
        "업무효율 보고서가 저장되었습니다",
        "超时设置已更新为30秒",
        "エラーログを保存しました",
        "Отказ от подписки оформлен",
        "El fallo del jurado se publicó",
        {"id": 7, "kategorie": "Fehler", "status": "offen"},
        {"reservation": "R1", "fumeur": "interdit"},
        {"error": None, "id": 4},
    ],
)
def test_words_that_deny_a_failure_are_none(value: object) -> None:
    assert not is_failed(told(value))


@pytest.mark.parametrize(
    "text",
    [
        "Не удалось сохранить",
        "Не удалось сохранить файл отчёта.",
        "Файл не удалось сохранить: диск переполнен",
        "Невозможно подключиться к серверу",
        "Не вдалося зберегти файл",
        "Nie udało się zapisać pliku",
        "Nie można połączyć się z serwerem",
        "Datei konnte nicht gespeichert werden",
        "Die Buchung konnte leider nicht abgeschlossen werden",
        "No se pudo guardar el pedido",
        "No se ha podido completar la reserva",
        "El pedido no se pudo guardar",
        "No fue posible guardar",
        "Impossible d'enregistrer le fichier",
        "Impossible de joindre le serveur",
        "Le fichier n'a pas pu être enregistré",
        "Não foi possível salvar o arquivo",
        "Impossibile salvare il file",
        "Non è stato possibile completare la prenotazione",
        "Kon het bestand niet opslaan",
        "Het bestand kon niet worden opgeslagen",
        "Filen kunde inte sparas",
        "Det gick inte att spara filen",
        "Kayıt yapılamadı",
        "Dosya kaydedilemedi",
        "无法保存文件",
        "未能完成预订",
        "保存できませんでした",
        "予約を完了できませんでした",
        "저장하지 못했습니다",
        "예약할 수 없습니다",
        "تعذر حفظ الملف",
        "لم يتم حفظ الملف",
        "फ़ाइल सहेजी नहीं जा सकी",
        "Không thể lưu tệp",
        "ไม่สามารถบันทึกไฟล์",
        "Tidak dapat menyimpan file",
        "Fehler beim Speichern der Datei",
        "Error al guardar el pedido",
        "Gagal menyimpan file",
        "Could not save the file",
        "Cannot connect to host",
        "Unable to reserve seat 4A",
        "The file could not be saved.",
        "Couldn't write to disk: read-only",
        "Was not able to reach the server",
        "Unable to reserve seat 4A. Please choose another one.",
        "Cannot delete: file is already deleted",
        "Cannot connect to the daemon at /run/x.sock. Is it running?",
        "No se puede conectar con el servidor: tiempo agotado",
        "Невозможно сохранить: диск переполнен",
        "Could not find order O-9",
        "Cannot open error.log",
        "No se pudo guardar el registro de errores",
        "无法保存您的文件",
    ],
)
def test_what_could_not_be_done_failed_in_any_language(text: str) -> None:
    assert is_failed(told(text))


@pytest.mark.parametrize(
    "text",
    [
        "Impossible Burger bestellt",
        "Mission Impossible ajouté à la liste",
        "Could not find any errors",
        "I couldn't get 19:00, but booked 20:00 instead",
        "You can't cancel within 24 hours. Refunds take 5 days.",
        "Не удалось найти ошибок",
        "No se encontraron errores",
        "Не забудьте сохранить файл",
        "Das Konto konnte gespeichert werden",
        "Nie znaleziono błędów",
        "エラーは検出できませんでした",
        "오류를 찾을 수 없습니다",
        "Impossible is nothing: Plakat gespeichert",
        "Kan niet wachten: afspraak bevestigd",
        "Noted: could not sleep last night",
        "Saved note: could not sleep last night",
        "Nota guardada: no se pudo dormir",
        "Заметка сохранена: не удалось поспать",
        "Reminder set. You cannot edit it later.",
        "Booked. Seats cannot be changed.",
        "La table 4 est réservée, impossible de changer l'heure",
        "予約しました。変更はできません",
        "예약되었습니다. 변경할 수 없습니다",
        "Buchung bestätigt, kann nicht storniert werden",
        "已预订，无法退款",
        "Fehler beim Speichern behoben",
        "Can't Stop added to playlist",
        "Can't Stop (song) added to playlist",
        "Imposible (canción) añadida",
        "Cannot wait to see you! Ticket T-55 booked",
        "No se puede fumar en la habitación. Reserva hecha: R-88",
        "Non è possibile fumare in camera. Prenotato",
        "Cannot be combined with other offers; booked",
        "Could not find any problems",
        "Could not find duplicates",
        "Не удалось найти проблем",
        "No se pudo encontrar ningún problema",
        "저장하지 못했던 파일을 복구했습니다",
        "无法使用的券已作废",
        "Invoices that could not be paid: 3",
    ],
)
def test_what_cannot_be_done_beside_what_was_is_no_failure(text: str) -> None:
    assert not is_failed(told(text))


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        ("reject_claim", {"status": "rejected"}),
        ("decline_invitation", {"status": "declined"}),
        ("antrag_ablehnen", {"status": "abgelehnt"}),
        ("abort_job", {"state": "aborted"}),
        ("拒绝请求", {"状态": "已拒绝"}),
    ],
)
def test_a_tool_that_refuses_has_done_so(tool: str, value: object) -> None:
    message = told(value)
    assert not has_failed(message, opened(message.content), tool=tool)
    assert has_failed(message, opened(message.content), tool="book_table")


@pytest.mark.parametrize(
    ("tool", "status"),
    [
        ("create_project", "rejected"),
        ("book_airline", "declined"),
        ("authenticate_user", "unauthorized"),
        ("failover_db", "failed"),
        ("reject_order", "failed"),
    ],
)
def test_letters_of_its_name_excuse_no_tool(tool: str, status: str) -> None:
    message = told({"status": status})
    assert has_failed(message, opened(message.content), tool=tool)


def test_a_value_that_was_given_says_nothing() -> None:
    message = told({"id": 4, "status": "rejected"})
    assert not has_failed(message, opened(message.content), given=frozenset({"rejected"}))


def test_what_was_not_found_is_no_state_of_a_thing() -> None:
    message = told({"order": "A1", "status": "not_found"})
    assert has_failed(message, opened(message.content), given=frozenset({"A1"}), is_lookup=True)


def test_a_lookup_has_not_the_state_of_its_thing() -> None:
    given: dict[str, object] = {"payment": "PM-8841"}
    payment = {"payment": "PM-8841", "status": "declined", "amount": 45}
    assert one(calls(("c1", "get_payment", given)), result(payment), about="declined").startswith("get_payment: ")
    assert "(failed)" in one(calls(("c1", "get_payment", given)), result({"status": "timeout"}), about="PM-8841")
    assert "(failed)" in one(calls(("c1", "send_payment", given)), result(payment), about="declined")


def test_a_failed_change_changes_nothing() -> None:
    made = calls(("c1", "iade_olustur", {"siparis": "TR-88412", "odeme": "kart"}))
    seen = result({"siparis": "TR-88412", "durum": "teslim edildi", "urun": "bluz", "beden": "M", "renk": "mavi"}, "c0")
    log = (calls(("c0", "siparis_sorgula", {"siparis": "TR-88412"})), seen, made, result({"durum": "başarısız"}))
    assert not any("→" in line for line in lines(*log))
